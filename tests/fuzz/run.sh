#!/bin/bash
# Runs the fuzzers: run.sh [SECONDS] [NAME...] builds them (all, or those named) with clang and
# fuzzes each for SECONDS (20); run.sh replay [NAME...] builds the ASan variant and runs each over
# its corpus once. Words a parser knows lie in dict/NAME.dict. Prints TAP.
set -u
cd "$(dirname "$0")/../.." || exit 1
mode=${1:-20}
[ $# -gt 0 ] && shift
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

names=("$@")
if [ ${#names[@]} = 0 ]; then
    for src in tests/fuzz/fuzz_*.c; do
        name=$(basename "$src" .c)
        names+=("${name#fuzz_}")
    done
fi
kind=fuzz
[ "$mode" = replay ] && kind=replay
out=build/fuzz/tests/fuzz
[ "$mode" = replay ] && out=build/asan/tests/fuzz
variant=${out#build/}
make -s VARIANT="${variant%%/*}" "${names[@]/#/$out/${kind}_}" >&2 || {
    echo "not ok 1 - the programs build: ${names[*]}"
    echo 1..1
    exit 1
}
for name in "${names[@]}"; do
    log=$out/$name.log
    corpus=tests/fuzz/corpus/$name
    if [ "$mode" = replay ]; then
        "$out/replay_$name" "$corpus"/* >"$log" 2>&1
        status=$?
        [ -s "$log" ] || status=1
        report $status "replay of $name over its corpus" "$log"
    else
        found=$out/found/$name
        dict=tests/fuzz/dict/$name.dict
        words=()
        [ -f "$dict" ] && words=(-dict="$dict")
        mkdir -p "$found"
        # New inputs go to build/; what fails is written beside them.
        "$out/fuzz_$name" -max_total_time="$mode" -timeout=10 -rss_limit_mb=1024 -print_final_stats=1 \
            "${words[@]}" -artifact_prefix="$found/failed-" "$found" "$corpus" >"$log" 2>&1
        status=$?
        report $status "fuzzing $name for $mode s: $(sed -n 's/stat::number_of_executed_units: *//p' "$log") inputs" "$log"
    fi
done
echo "1..$n"
[ "$bad" = 0 ]
