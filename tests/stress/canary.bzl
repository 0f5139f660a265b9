"""Builds a binary once more, with everything below it, with faults that can be planted in it.

A checker that has never found anything proves nothing, so each checker is shown a program in which one safeguard is left out,
and the test fails if it does not find the fault. All such programs are of one build (common/base/planted_fault.h).
"""

def _planted_fault_impl(settings, attr):
    define = attr.define or "KVD_PLANTED_FAULTS"
    return {"//command_line_option:copt": settings["//command_line_option:copt"] + ["-D" + define]}

_planted_fault = transition(
    implementation = _planted_fault_impl,
    inputs = ["//command_line_option:copt"],
    outputs = ["//command_line_option:copt"],
)

def _canary_binary_impl(ctx):
    built = ctx.attr.binary[0][DefaultInfo].files_to_run.executable
    if not ctx.attr.fault:
        executable = ctx.actions.declare_file(ctx.label.name)
        ctx.actions.symlink(output = executable, target_file = built, is_executable = True)
        return [DefaultInfo(executable = executable, runfiles = ctx.runfiles([executable]))]
    program = ctx.actions.declare_file(ctx.label.name + ".program")
    ctx.actions.symlink(output = program, target_file = built, is_executable = True)
    executable = ctx.actions.declare_file(ctx.label.name)
    ctx.actions.write(
        output = executable,
        content = "#!/bin/sh\nKVD_PLANTED_FAULT='%s' exec \"$0.program\" \"$@\"\n" % ctx.attr.fault,
        is_executable = True,
    )
    return [DefaultInfo(executable = executable, runfiles = ctx.runfiles([executable, program]))]

canary_binary = rule(
    implementation = _canary_binary_impl,
    executable = True,
    attrs = {
        "binary": attr.label(cfg = _planted_fault, mandatory = True, executable = False),
        "fault": attr.string(doc = "the one that is planted, as Planted() calls it"),
        "define": attr.string(doc = "instead of it: a macro that changes the program"),
        "_allowlist_function_transition": attr.label(default = "@bazel_tools//tools/allowlists/function_transition_allowlist"),
    },
)
