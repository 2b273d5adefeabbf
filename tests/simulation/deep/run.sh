#!/usr/bin/env bash
# The deep simulation: droverd's controller, store and core over a real PostgreSQL in virtual time.
# SEEDS seeds (default 200) from FIRST on, the first four of them twice: the same seed is the same trace.
# DAYS=30: each seed is so many days of operation, after which nothing has grown. Prints TAP.
set -u
cd "$(dirname "$0")/../../.." || exit 1
seeds=${SEEDS:-200}
first=${FIRST:-1}
deep=build/release/tests/simulation/deep/deep
clock=$PWD/build/release/tests/kit/clock_shift.so
make -s -j2 VARIANT=release deep "${clock#"$PWD"/}" >&2 || { echo "not ok - deep simulation: does not build"; exit 1; }
if [ "${DAYS:-0}" -gt 0 ]; then
    exec $deep --first "$first" --seeds "$seeds" --jobs 2 --days "$DAYS" --clock "$clock"
fi
exec $deep --first "$first" --seeds "$seeds" --jobs 2 --twice 4
