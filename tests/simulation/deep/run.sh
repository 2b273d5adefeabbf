#!/usr/bin/env bash
# The deep simulation: droverd's controller, store and core over a real PostgreSQL in virtual time.
# SEEDS seeds (default 200) from FIRST on, the first four of them twice: the same seed is the same trace.
# JOBS (2) run at once. LARGE=1: campaigns of 20 to 40 parts, most have 3 to 14 otherwise. WITH=verbs: only those that have such moves. CELLS=300: at least so many cells of the table of verbs are met; the others are told.
# DAYS=30: each seed is so many days of operation, after which nothing has grown. Prints TAP.
set -u
cd "$(dirname "$0")/../../.." || exit 1
seeds=${SEEDS:-200}
first=${FIRST:-1}
deep=build/release/tests/simulation/deep/deep
clock=$PWD/build/release/tests/kit/clock_shift.so
make -s -j2 VARIANT=release deep "${clock#"$PWD"/}" >&2 || { echo "not ok - deep simulation: does not build"; exit 1; }
# A cluster has one clock, and each seed moves it: one cluster a seed.
days() {
    local out status=0
    out=$(mktemp -d)
    for i in $(seq "$first" $((first + seeds - 1))); do
        { $deep --first "$i" --seeds 1 --jobs 1 --days "$DAYS" --clock "$clock" > "$out/$i" 2>&1 || touch "$out/failed"; } &
        [ $(((i - first) % 2)) = 0 ] || wait
    done
    wait
    cat "$out"/[0-9]*
    [ ! -e "$out/failed" ] || status=1
    rm -r "$out"
    return $status
}
if [ "${DAYS:-0}" -gt 0 ]; then
    days
    exit
fi
exec $deep --first "$first" --seeds "$seeds" --jobs "${JOBS:-2}" --twice 4 ${LARGE:+--large} ${WITH:+--with "$WITH"} ${CELLS:+--cells "$CELLS"}
