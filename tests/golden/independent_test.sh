#!/usr/bin/env bash
# Runs the independent decoder; without bytecode files, for the directory may be read-only.
exec python3 -B "$(dirname "$0")/independent_test.py"
