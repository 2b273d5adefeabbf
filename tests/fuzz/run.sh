#!/bin/bash
# Runs every fuzzer. run.sh [SECONDS] builds them with clang and fuzzes each for SECONDS (20);
# run.sh replay builds the ASan variant and runs each over its corpus once. Prints TAP.
set -u
cd "$(dirname "$0")/../.." || exit 1
mode=${1:-20}
n=0
bad=0

report() { # status, name, file with the output
    n=$((n + 1))
    if [ "$1" = 0 ]; then
        echo "ok $n - $2"
    else
        bad=$((bad + 1))
        echo "not ok $n - $2"
        tail -30 "$3" | sed 's/^/# /'
    fi
}

if [ "$mode" = replay ]; then
    make -s VARIANT=asan fuzz-replays >&2 || { echo "not ok 1 - the replay programs build"; echo 1..1; exit 1; }
    out=build/asan/tests/fuzz
else
    make -s VARIANT=fuzz fuzzers >&2 || { echo "not ok 1 - the fuzzers build"; echo 1..1; exit 1; }
    out=build/fuzz/tests/fuzz
fi
for src in tests/fuzz/fuzz_*.c; do
    name=$(basename "$src" .c)
    name=${name#fuzz_}
    log=$out/$name.log
    corpus=tests/fuzz/corpus/$name
    if [ "$mode" = replay ]; then
        "$out/replay_$name" "$corpus"/* >"$log" 2>&1
        status=$?
        [ -s "$log" ] || status=1
        report $status "replay of $name over its corpus" "$log"
    else
        found=$out/found/$name
        mkdir -p "$found"
        # New inputs go to build/; what fails is written beside them.
        "$out/fuzz_$name" -max_total_time="$mode" -timeout=10 -rss_limit_mb=1024 -print_final_stats=1 \
            -artifact_prefix="$found/failed-" "$found" "$corpus" >"$log" 2>&1
        status=$?
        report $status "fuzzing $name for $mode s: $(sed -n 's/stat::number_of_executed_units: *//p' "$log") inputs" "$log"
    fi
done
echo "1..$n"
[ "$bad" = 0 ]
