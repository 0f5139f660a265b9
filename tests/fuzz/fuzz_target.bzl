"""fuzz_target: a function that fuzzers call with bytes."""

def fuzz_target(name, deps, made_up = 4000, tags = []):
    """Declares the programs of NAME_fuzz.cc, with its inputs in corpus/NAME and found/NAME.

    NAME_replay_test runs it on the inputs that are in the tree, and on some made of them: with any compiler, in every
    test run. NAME_fuzz is libFuzzer's (bazel build --config=fuzz; run.sh does it).

    Args:
      name: NAME.
      deps: what it is to be linked with.
      made_up: inputs that the test makes of them.
      tags: of the test.
    """
    inputs = native.glob(["corpus/%s/*" % name, "found/%s/*" % name])
    native.cc_library(
        name = name + "_target",
        srcs = [name + "_fuzz.cc"],
        hdrs = ["fuzz.h"],
        deps = deps,
        alwayslink = True,
    )
    native.cc_test(
        name = name + "_replay_test",
        size = "small",
        srcs = ["replay_main.cc"],
        args = [str(made_up)] + [
            "tests/fuzz/" + folder + "/" + name
            for folder in ["corpus", "found"]
            if native.glob(["%s/%s/*" % (folder, name)])
        ],
        data = inputs,
        tags = tags,
        deps = [
            ":" + name + "_target",
            "//common/base:random",
        ],
    )
    native.cc_binary(
        name = name + "_fuzz",
        linkopts = ["-fsanitize=fuzzer"],
        tags = ["manual"],
        deps = [":" + name + "_target"],
    )
