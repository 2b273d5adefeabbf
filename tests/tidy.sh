#!/bin/sh
# Checks of form over the whole tree: sizes, include arrows, banned words and calls, globals, inline SQL.
# Prints TAP. The checks are in tidy.py; objects of the release variant must have been built.
exec python3 "$(dirname "$0")/tidy.py" "$@"
