#!/bin/bash
# Runs every suite, adds up their TAP lines, prints the seconds of each and, last, "N passed, N failed".
# A suite that ends badly without a "not ok" line counts as one failure, one that prints no TAP line too.
# Two lanes: suites that mostly wait run beside those that use the CPU. `run.sh long` runs the long
# suites in their place.
set -u
cd "$(dirname "$0")/.."
mode=${1:-}
out=build/test
rm -rf "$out"
mkdir -p "$out"
start=$(date +%s)

# suite NAME SECONDS COMMAND...: one suite, its output in a file, its count in another
suite() {
    local name=$1 limit=$2 began ended rc ok bad
    shift 2
    began=$(date +%s)
    timeout -k 10 "$limit" "$@" >"$out/$name.log" 2>&1 </dev/null
    rc=$?
    ended=$(date +%s)
    ok=$(grep -cE '^[[:space:]]*ok ' "$out/$name.log")
    bad=$(grep -cE '^[[:space:]]*not ok ' "$out/$name.log")
    if [ $((ok + bad)) = 0 ] || { [ $rc != 0 ] && [ "$bad" = 0 ]; }; then
        bad=$((bad + 1))
        echo "not ok - $name ended with status $rc and $ok passed" >>"$out/$name.log"
    fi
    echo "$ok $bad" >"$out/$name.count"
    printf '%-28s %4d passed %3d failed %5d s\n' "$name" "$ok" "$bad" $((ended - began))
    if [ "$bad" != 0 ]; then
        grep -E -B 12 '^[[:space:]]*not ok ' "$out/$name.log" | tail -60 | sed 's/^/    /'
    fi
}

programs() { # programs NAME SECONDS FILES...: test programs one after the other as one suite
    local name=$1 limit=$2
    shift 2
    suite "$name" "$limit" bash -c 'rc=0; for t in "$@"; do echo "# $t"; "$t" || rc=1; done; exit $rc' _ "$@"
}

echo "build"
suite build 900 bash -c 'make --no-print-directory -j2 all test-bins && echo "ok 1 - builds without a warning"'
[ "$(cut -d" " -f2 $out/build.count)" = 0 ] || { echo "0 passed, 1 failed"; exit 1; }
if [ "$mode" = long ]; then
    . tests/suites_long.sh
else
    . tests/suites.sh
fi
passed=$(cat "$out"/*.count | awk '{n += $1} END {print n + 0}')
failed=$(cat "$out"/*.count | awk '{n += $2} END {print n + 0}')
echo "total $(($(date +%s) - start)) s"
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
