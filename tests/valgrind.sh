#!/bin/bash
# The unit tests of the release build under valgrind: no invalid access, no use of a value never set, nothing lost.
# valgrind.sh [PATTERN]: those whose name matches. One TAP line a program; two run at once. Without test_worker_sandbox:
# the sandbox refuses valgrind's own calls and has no room for its memory; the same program runs under ASan.
set -u
cd "$(dirname "$0")/.." || exit 1
pattern=${1:-.}
out=build/valgrind
export UNDER_VALGRIND=1
rm -rf "$out"
mkdir -p "$out"
mapfile -t programs < <(find tests/unit -name 'test_*.c' -not -path '*/statistics/*' -not -name test_worker_sandbox.c | sort | grep -E "$pattern" | sed 's|\(.*\)\.c$|build/release/\1|')
one() {
    local name
    name=$(basename "$1")
    timeout -k 10 600 valgrind -q --leak-check=full --errors-for-leak-kinds=definite --error-exitcode=99 \
        --child-silent-after-fork=yes --log-file="$1.valgrind" "$1" >"$2/$name.log" 2>&1 </dev/null
    echo "$?" >"$2/$name.status"
    # What it says of itself ("--PID--"), as that it does not know pidfd_open(), is no fault of the program ("==PID==").
    grep -v '^--[0-9]*-- ' "$1.valgrind" >"$2/$name.report"
    rm -f "$1.valgrind"
}
export -f one
# shellcheck disable=SC2016 # the inner shell expands them
printf '%s\n' "${programs[@]}" | xargs -P 2 -I{} bash -c 'one "$1" "$2"' _ {} "$out"
n=0
bad=0
for p in "${programs[@]}"; do
    n=$((n + 1))
    name=$(basename "$p")
    read -r status <"$out/$name.status" || status=none
    if [ "$status" = 0 ] && [ ! -s "$out/$name.report" ] && grep -qE '^[[:space:]]*ok ' "$out/$name.log"; then
        echo "ok $n - valgrind: $name"
    else
        bad=$((bad + 1))
        head -30 "$out/$name.report" | cut -c1-200 | sed 's/^/# /'
        grep -E '^[[:space:]]*not ok ' "$out/$name.log" | head -3 | sed 's/^[[:space:]]*/# /'
        echo "not ok $n - valgrind: $name ended with status $status"
    fi
done
echo "1..$n"
[ "$bad" = 0 ] && [ "$n" -gt 0 ]
