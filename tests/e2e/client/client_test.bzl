"""client_test: a test of the client's contract, over shared memory and, in the Soft-RoCE guest, by RDMA."""

load("//tests/softroce:guest.bzl", "guest_test")

def client_test(name, more_srcs = [], environment = {}, guest_memory = "2g", tags = []):
    """NAME_test.cc as NAME_test (shared memory) and NAME_guest_test (RDMA).

    Args:
      name: what the tests begin with.
      more_srcs: further cases of the same program.
      environment: variables for both.
      guest_memory: that the guest has.
      tags: further tags of both.
    """
    native.cc_binary(
        name = name,
        testonly = True,
        srcs = [name + "_test.cc"] + more_srcs,
        deps = [
            ":kvd_under_test",
            "//client:kv_client",
            "//common/base:hash",
            "//common/base:random",
            "//third_party:absl",
            "//tests/support:catch2_main",
            "//tests/support:status_testing",
            "//tests/support:temp_dir",
        ],
    )
    client_program_tests(name, name, environment, guest_memory, tags)

def client_program_tests(name, program, environment = {}, guest_memory = "2g", tags = []):
    """The tests of a program that a client_test has made, with another name and environment."""
    native.sh_test(
        name = name + "_test",
        size = "medium",
        srcs = [":" + program],
        data = ["//server:kvd"],
        env = dict(environment, KVD = "$(rootpath //server:kvd)"),
        tags = tags,
    )
    guest_test(
        name = name + "_guest_test",
        size = "large",
        binary = ":" + program,
        tags = tags,
        data = ["//server:kvd"],
        guest_args = [
            "--memory=" + guest_memory,
            "--two-devices",
            "--env=KVD=$(rootpath //server:kvd)",
            "--env=KVD_OVER=rdma",
        ] + ["--env=%s=%s" % pair for pair in environment.items()],
    )
