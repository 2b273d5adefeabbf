#!/bin/bash
# Aim: two builds of one tree give the same programs, byte for byte, wherever they are built.
# Method: the tree's files are copied into two folders, the one's name longer than the other's, built and installed there; cmp.
set -eu
top=$(cd "$(dirname "$0")/.." && pwd)
at=$(mktemp -d)
trap 'rm -rf "$at"' EXIT
for name in a a-folder/with-another-name; do
    mkdir -p "$at/$name"
    (cd "$top" && git ls-files -z -co --exclude-standard | xargs -0 cp --parents -t "$at/$name")
    mkdir -p "$at/$name/build"
    for packages in deps web; do ln -s "$top/build/$packages" "$at/$name/build/$packages"; done
    make -s -C "$at/$name" -j2 install DESTDIR="$at/out-${name%%/*}" PREFIX=/usr >"$at/log" 2>&1 || {
        tail -20 "$at/log"
        echo "not ok 1 - it builds in $name"
        exit 1
    }
done
n=0
bad=0
while read -r file; do
    n=$((n + 1))
    if cmp "$at/out-a/$file" "$at/out-a-folder/$file"; then
        echo "ok $n - $file"
    else
        bad=1
        echo "not ok $n - $file"
    fi
done < <(cd "$at/out-a" && find . -type f | sort)
[ "$n" -ge 15 ] || { echo "not ok $((n + 1)) - only $n files were installed"; bad=1; }
echo "1..$n"
exit $bad
