#!/bin/bash
# Runs C test programs one after the other: each.sh FOLDER|FILE... , folders below tests/ or sources test_X.c.
# VARIANT (release) says which build. A program that ends badly, or without an "ok" line,
# gets a "not ok" line if it wrote none.
# A source named with a leading - is left out. A program that is not there is built.
set -u
cd "$(dirname "$0")/.." || exit 1
rc=0
skip=()
sources=()
for arg in "$@"; do
    case $arg in
    -*) skip+=("tests/${arg#-}") ;;
    *) mapfile -t -O "${#sources[@]}" sources < <(find "tests/$arg" -name 'test_*.c' | sort) ;;
    esac
done
for source in "${sources[@]}"; do
    for s in "${skip[@]}"; do
        case $source in "$s"*) continue 2 ;; esac
    done
    program=build/${VARIANT:-release}/${source%.c}
    [ -e "$program" ] || flock "build/${VARIANT:-release}.lock" make -s VARIANT="${VARIANT:-release}" "$program" >&2
    began=$SECONDS
    echo "# $program"
    said=$(timeout -k 10 300 "$program" 2>&1)
    status=$?
    printf '%s\n# %d s\n' "$said" $((SECONDS - began))
    if [ $status != 0 ] || ! grep -qE '^[[:space:]]*ok ' <<<"$said"; then
        rc=1
        grep -qE '^[[:space:]]*not ok ' <<<"$said" || echo "not ok - $program ended with status $status and these lines"
    fi
done
exit $rc
