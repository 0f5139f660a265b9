#!/usr/bin/env bash
# Runs the comparison; without bytecode files, for the directory may be read-only.
exec python3 -B "$(dirname "$0")/instructions_test.py" "$@"
