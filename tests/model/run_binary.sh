#!/bin/sh
# Runs a test that is a binary of a build of its own; it reports its cases by itself.
exec "$@"
