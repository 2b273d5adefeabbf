#!/usr/bin/env bash
# Aim: the simulations stay fast enough to be run in thousands. Method: what each does in its own CPU time, against a
# floor; the best of three runs counts, and a tenth less is allowed: other programs on the machine cost caches and clock.
# LIVES_MIN: attempt lives a CPU second of the wide one. CAMPAIGNS_MIN: campaigns a CPU minute of the deep one, with its
# PostgreSQL, campaigns of 20 to 40 parts. Prints TAP.
set -u
cd "$(dirname "$0")/../.." || exit 1
failed=0
n=0
# at_least NAME FLOOR PATTERN COMMAND...: PATTERN is sed's, its first group the figure.
at_least() {
    local name=$1 floor=$2 pattern=$3 best=0 figure
    shift 3
    for _ in 1 2 3; do
        figure=$("$@" 2>&1 | sed -nE "s/$pattern/\1/p" | tail -1)
        [ "${figure:-0}" -gt "$best" ] && best=$figure
        [ "$best" -ge "$floor" ] && break
    done
    n=$((n + 1))
    if [ $((best * 10)) -ge $((floor * 9)) ] && [ "$best" -gt 0 ]; then
        echo "ok $n - $name: $best, at least $floor less a tenth"
    else
        echo "not ok $n - $name: $best, at least $floor less a tenth"
        failed=1
    fi
}
make --no-print-directory -s -j2 VARIANT=release simulator deep >&2 || { echo "not ok 1 - the simulations build"; exit 1; }
at_least "attempt lives a CPU second" "${LIVES_MIN:-10000}" '.*"sim_attempt_lives_per_cpu_s","value":([0-9]+).*' \
    build/release/tests/simulation/wide/sim --bench --seeds 300
at_least "deep campaigns a CPU minute" "${CAMPAIGNS_MIN:-100}" '.*: ([0-9]+) campaigns of [0-9.]+ tasks a CPU minute.*' \
    build/release/tests/simulation/deep/deep --first 1 --seeds 60 --jobs 1 --large
echo "1..$n"
exit $failed
