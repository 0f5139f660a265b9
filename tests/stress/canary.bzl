"""Builds a binary once more, with everything below it, with a fault planted.

A checker that has never found anything proves nothing, so each checker is shown a build in which one safeguard is left out,
and the test fails if it does not find the fault.
"""

def _planted_fault_impl(settings, attr):
    return {"//command_line_option:copt": settings["//command_line_option:copt"] + ["-D" + attr.fault]}

_planted_fault = transition(
    implementation = _planted_fault_impl,
    inputs = ["//command_line_option:copt"],
    outputs = ["//command_line_option:copt"],
)

def _canary_binary_impl(ctx):
    built = ctx.attr.binary[0][DefaultInfo].files_to_run.executable
    executable = ctx.actions.declare_file(ctx.label.name)
    ctx.actions.symlink(output = executable, target_file = built, is_executable = True)
    return [DefaultInfo(executable = executable, runfiles = ctx.runfiles([executable]))]

canary_binary = rule(
    implementation = _canary_binary_impl,
    executable = True,
    attrs = {
        "binary": attr.label(cfg = _planted_fault, mandatory = True, executable = False),
        "fault": attr.string(mandatory = True, doc = "macro that leaves the safeguard out"),
        "_allowlist_function_transition": attr.label(default = "@bazel_tools//tools/allowlists/function_transition_allowlist"),
    },
)
