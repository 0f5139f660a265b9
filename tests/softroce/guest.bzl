"""guest_test: a test program that needs RDMA devices, run in the Soft-RoCE guest."""

def guest_test(name, binary, args = [], guest_args = [], data = [], tags = [], size = "medium", **kwargs):
    """Runs a test program where it has RDMA devices.

    In the guest of guest.sh, or, if KVD_RDMA_DEVICES is in the test's environment, on this machine's own
    devices. The program prints KVD_CASE lines as every test does. If there can be no guest here, the test
    says that it was skipped and why.

    Args:
      name: the test's name.
      binary: the program: an executable target, such as a cc_binary with //tests/support:catch2_main.
      args: its arguments.
      guest_args: options of guest.sh, such as "--two-devices".
      data: files that it needs.
      tags: further tags.
      size: the test's size; the command may run for the timeout of that size less 90 s.
      **kwargs: anything else that sh_test takes, such as env.
    """
    native.sh_test(
        name = name,
        size = size,
        srcs = ["//tests/softroce:run_in_guest.sh"],
        args = guest_args + ["--", "$(rootpath %s)" % binary] + args,
        data = data + [binary, "//tests/softroce:guest"],
        # Bazel's sandbox hides the kernel's cache. An emulated guest needs the processors for itself.
        tags = tags + ["local", "cpu:2"],
        **kwargs
    )
