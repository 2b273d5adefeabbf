#!/usr/bin/env bash
# The exhaustive check of the submit protocol, then the planted bugs it must find. Prints TAP.
set -u
cd "$(dirname "$0")/../.." || exit 1
make -s VARIANT=release exhaustive >&2 || { echo "not ok - exhaustive: does not build"; exit 1; }
failed=0
build/release/tests/simulation/exhaustive || failed=1
bash tests/simulation/mutants.sh || failed=1
exit $failed
