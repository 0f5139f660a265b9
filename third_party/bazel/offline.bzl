"""Local stand-ins for what Bazel itself would download."""

def offline_repositories(kvd = "."):
    """Declares them for Debian's bazel-bootstrap, which names no version (or 4.x).

    A newer Bazel brings its own, pinned to its version, so nothing is declared for it.

    Args:
      kvd: path of kvd's sources, from the workspace that uses them.
    """
    version = native.bazel_version
    if version and not version.startswith("4."):
        return
    for name, path in {
        # Stubs of ours: C++ rules are native in this Bazel, and coverage is not used.
        "rules_cc": kvd + "/third_party/bazel/rules_cc",
        "remote_coverage_tools": kvd + "/third_party/bazel/remote_coverage_tools",
        # Debian packages bazel-rules-java, bazel-rules-proto and bazel-platforms.
        "rules_java": "/usr/share/bazel/rules/java",
        "rules_proto": "/usr/share/bazel/rules/proto",
        "platforms": "/usr/share/bazel/tools/platforms",
    }.items():
        native.local_repository(name = name, path = path)
