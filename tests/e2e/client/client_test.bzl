"""client_test: a test of the client's contract, over shared memory and, in the Soft-RoCE guest, by RDMA."""

load("//tests/softroce:guest.bzl", "guest_test")

def client_test(name):
    """NAME_test.cc as NAME_test (shared memory) and NAME_guest_test (RDMA)."""
    native.cc_binary(
        name = name,
        testonly = True,
        srcs = [name + "_test.cc"],
        deps = [
            ":kvd_under_test",
            "//client:kv_client",
            "//common/base:random",
            "//tests/support:catch2_main",
            "//tests/support:status_testing",
        ],
    )
    native.sh_test(
        name = name + "_test",
        size = "medium",
        srcs = [":" + name],
        data = ["//server:kvd"],
        env = {"KVD": "$(rootpath //server:kvd)"},
    )
    guest_test(
        name = name + "_guest_test",
        size = "large",
        binary = ":" + name,
        data = ["//server:kvd"],
        guest_args = [
            "--memory=2g",
            "--two-devices",
            "--env=KVD=$(rootpath //server:kvd)",
            "--env=KVD_OVER=rdma",
        ],
    )
