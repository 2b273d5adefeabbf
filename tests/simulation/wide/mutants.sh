#!/usr/bin/env bash
# Aim: show that the campaign simulator finds bugs. Method: each patch in mutants/, each of the
# protocol's that is named in mutants/protocol.txt, and each of the leader's
# (tests/unit/core/leader/mutants) that is named in mutants/leader.txt, plants one in copies
# of files of orchestrator/core; only the objects made of those are compiled anew and linked in front
# of libcore; the simulator runs seeds from 1 on until one breaks a promise, within CPU_MAX CPU
# seconds. A patch that does not apply or compile, or a bug that is not found, fails.
# Usage: sim_mutants.sh [--draw N] [NAME ...]; --draw: N of them, by the day (DAY=YYYYMMDD repeats
# one). Prints TAP and a line of figures. Needs a built simulator (make simulator).
set -u
cd "$(dirname "$0")/../../.." || exit 1
here=tests/simulation/wide
out=build/release/tests/simulation/wide
CPU_MAX=${CPU_MAX:-60}
DAY=${DAY:-$(date +%Y%m%d)}
libs="$(pkg-config --libs libcurl libcrypto jansson yaml-0.1 libpcre2-8 zlib 2>/dev/null) -Wl,--as-needed -lm"
export here out CPU_MAX libs

objects_of() { # FILE: the sources whose objects contain it
    case $1 in
    *.c) echo "$1" ;;
    *) grep -lE "^#include \"(.*/)?$(basename "$1")\"" orchestrator/core/*/*.c ;;
    esac
}

compile() { # DIR: what the patch touched, and the simulator with it
    local dir=$1 file src
    for file in $(cd "$dir" && find orchestrator -type f ! -name '*.orig'); do
        for src in $(objects_of "$file"); do
            [ -f "$dir/$src" ] || { mkdir -p "$dir/$(dirname "$src")" && cp "$src" "$dir/$src"; }
            ${CC:-gcc} -std=gnu17 -D_GNU_SOURCE -O2 -w -fPIE -pthread -Iinclude "-I$dir/orchestrator" -Iorchestrator \
                "-I$(dirname "$src")" -c "$dir/$src" -o "$dir/$(basename "$src" .c).o" || return 1
        done
    done
    # shellcheck disable=SC2046,SC2086 # lists of words
    ${CC:-gcc} -pie -pthread -o "$dir/sim" $(for src in "$here"/sim*.c; do echo "$out/$(basename "$src" .c).o"; done) \
        "$dir"/*.o -Wl,--start-group build/release/liborchestrator_core_*.a build/release/liborchestrator_common.a \
        -Wl,--end-group $libs
}

one() {
    local name=$1 patch dir=$out/mutants/$1 file cpu seed
    patch=$here/mutants/$name.patch
    [ -f "$patch" ] || patch=$here/../exhaustive/mutants/$name.patch
    [ -f "$patch" ] || patch=tests/unit/core/leader/mutants/$name.patch
    rm -rf "$dir" && mkdir -p "$dir" || exit 1
    # shellcheck disable=SC2013 # paths of the tree have no spaces
    for file in $(sed -n 's,^+++ b/\([^[:space:]]*\).*,\1,p' "$patch"); do
        mkdir -p "$dir/$(dirname "$file")" && cp "$file" "$dir/$file"
    done
    if ! patch -s -f -F 2 -p1 -d "$dir" < "$patch" > "$dir/log" 2>&1; then
        echo "not ok - mutant $name: the patch does not apply"
        return
    fi
    if ! compile "$dir" > "$dir/log" 2>&1; then
        echo "not ok - mutant $name: does not compile"
        return
    fi
    (ulimit -t "$CPU_MAX" && exec "$dir/sim" --one --seeds 100000 --jobs 1 --shrink 0) > "$dir/log" 2> "$dir/errors"
    cpu=$(sed -n 's/^# simulation: .* \([0-9.]*\) CPU s$/\1/p' "$dir/log")
    seed=$(sed -n 's/^# BROKEN in seed \([0-9]*\),.*/\1/p' "$dir/log" | head -1)
    if [ -n "$cpu" ] && [ -n "$seed" ] && ! "$out/sim" --first "$seed" --seeds 1 --jobs 1 --shrink 0 > /dev/null 2>&1; then
        echo "not ok - mutant $name: its seed $seed is broken without it, too"
    elif [ -n "$cpu" ] && [ -n "$seed" ]; then
        echo "ok - mutant $name: found in $cpu CPU s: $(sed -n 's/^# BROKEN in //p' "$dir/log" | head -1 | cut -c 1-150)"
        rm -rf "$dir"
    else
        echo "not ok - mutant $name: not found in $CPU_MAX CPU s, see $dir"
    fi
}
export -f one compile objects_of

names() {
    basename -s .patch -a $here/mutants/*.patch
    grep -hv '^#' $here/mutants/protocol.txt $here/mutants/leader.txt
}
drawn() { # N: of the sorted names those whose hash with the day comes first
    local name
    names | while read -r name; do
        echo "$(printf '%s %s' "$DAY" "$name" | sha256sum | cut -c 1-16) $name"
    done | sort | head -n "$1" | cut -d ' ' -f 2
}
if [ "${1:-}" = --draw ]; then
    echo "# mutants of day $DAY: make sim-mutants runs all"
    list=$(drawn "$2")
elif [ $# -gt 0 ]; then
    list=$(printf '%s\n' "$@")
else
    list=$(names)
fi
mkdir -p $out
echo "$list" | xargs -P 2 -I{} bash -c 'one {}' | tee $out/mutants.log
awk '/ - mutant / { n++ } /^ok/ { ok++; for (i = 1; i < NF; i++) if ($i == "in") { if ($(i + 1) > slow) slow = $(i + 1); break } }
    END { printf "# mutants: %d caught of %d, slowest %.1f CPU s\n", ok, n, slow }' $out/mutants.log
[ -s $out/mutants.log ] && ! grep -q '^not ok' $out/mutants.log
