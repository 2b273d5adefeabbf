#!/usr/bin/env bash
# Aim: show that the unit tests of core/leader hold its rules. Method: each patch in mutants/ deletes
# or breaks one rule in a copy of one file of orchestrator/core/leader (or of another folder of core); only that object is compiled
# anew, the unit test of the same name, or the one of its line "Held by test_X.", is linked with it and must fail. A patch that does not apply
# or compile, or a bug that is not found, fails.
# Usage: mutants.sh [NAME ...]; prints TAP. Needs built tests (make test-bins). EVERY=30: every
# 30th of them in the order of their files.
set -u
cd "$(dirname "$0")/../../../.." || exit 1
here=tests/unit/core/leader
out=build/release/tests/unit/core/leader
libs="$(pkg-config --libs libcurl libcrypto jansson yaml-0.1 libpcre2-8 zlib 2>/dev/null) -Wl,--as-needed -lm -lcmocka"
gold=$(command -v ld.gold >/dev/null && echo -fuse-ld=gold)
export here out libs gold

one() {
    name=$1
    dir=$out/mutants/$name
    patch=$(< "$here/mutants/$name.patch")
    [[ $patch =~ $'\n+++ b/'(orchestrator/core/([a-z]*)/([a-z_]*)\.c) ]]
    src=${BASH_REMATCH[1]} folder=${BASH_REMATCH[2]} module=${BASH_REMATCH[3]}
    [[ $patch =~ $'\nHeld by test_'([a-z_]*)\.$'\n' ]] && module=${BASH_REMATCH[1]}
    [ ! -e "$dir" ] || rm -rf "$dir"
    mkdir -p "$dir/orchestrator/core/$folder" || exit 1
    cp "$src" "$dir/$src"
    if ! patch -s -f -F 1 -p1 -d "$dir" < "$here/mutants/$name.patch" > "$dir/log" 2>&1; then
        echo "not ok - mutant $name: the patch does not apply"
        return
    fi
    # shellcheck disable=SC2086
    if ! ${CC:-gcc} -std=gnu17 -D_GNU_SOURCE -O0 -w -fPIE -Iinclude -Iorchestrator "-Iorchestrator/core/$folder" \
        -c "$dir/$src" -o "$dir/mutant.o" > "$dir/log" 2>&1 ||
        ! ${CC:-gcc} $gold -pie -pthread -o "$dir/test" -Wl,--defsym=main=main_test_$module "build/release/tests/unit/core/$folder/test_$module.o" build/release/tests/unit/unit.o "$dir/mutant.o" \
            -Wl,--start-group build/release/liborchestrator_core_*.a build/release/liborchestrator_common.a \
            -Wl,--end-group $libs > "$dir/log" 2>&1; then
        echo "not ok - mutant $name: does not compile"
        return
    fi
    { (ulimit -t 20 && exec timeout 300 "$dir/test") > "$dir/log" 2>&1 < /dev/null; } 2>/dev/null # the shell tells of a killed one
    status=$?
    if [ $status -ne 0 ] && [ $status -ne 124 ] && [ $status -ne 137 ] && [ $status -ne 152 ]; then
        said=$(tr -d '\0' < "$dir/log")
        [[ $said =~ (not ok [0-9]+ - |FAILED *\] *)(test_[a-z0-9_]+) ]]
        echo "ok - mutant $name: found by ${BASH_REMATCH[2]:-}"
        rm -rf "$dir"
    else
        echo "not ok - mutant $name: not found (exit $status, see $dir/log)"
    fi
}
export -f one
began=$SECONDS
mkdir -p "$out"
# The patches in the order of the files they change.
chosen() {
    grep -H '^+++ b/' $here/mutants/*.patch | sed 's,^.*/\([^/]*\)\.patch:+++ b/\(.*\),\2 \1,' | LC_ALL=C sort |
        awk -v every="${EVERY:-1}" '(NR - 1) % every == 0 { print $2 }'
}
if [ $# -gt 0 ]; then printf '%s\n' "$@"; else chosen; fi |
    xargs -P 2 -I{} bash -c 'one {}' | tee $out/mutants.log
echo "# $(grep -c '^ok' $out/mutants.log) of $(wc -l < $out/mutants.log) planted bugs found in $((SECONDS - began)) s"
[ $# -gt 0 ] || [ "$(wc -l < $out/mutants.log)" -ge 30 ] || { echo "not ok - only a few planted bugs were tried"; exit 1; }
[ -s $out/mutants.log ] && ! grep -q '^not ok' $out/mutants.log
