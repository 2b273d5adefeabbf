#!/usr/bin/env bash
# Aim: the simulator runs the leader and does not repeat it. Method: counts the lines of the functions
# that mirror.txt names; fails at 300, or when one of them is gone. Prints TAP.
set -u
cd "$(dirname "$0")" || exit 1
sum=0 gone=
while read -r file name; do
    n=$(awk -v name="$name" '!on && /^[a-z]/ && index($0, name "(") { on = 1; n = 0 }
        on { n++ } on && /^}/ { print n; exit } on && /;$/ && n == 1 { on = 0 }' "$file")
    sum=$((sum + ${n:-0}))
    [ -n "$n" ] || gone="$gone $name"
done < <(grep -v '^#' mirror.txt)
ok=ok
[ "$sum" -lt 300 ] && [ -z "$gone" ] || ok="not ok"
echo "$ok - wide simulation: $sum of $(cat sim*.c sim*.h | wc -l) lines repeat the product (under 300)$gone"
[ "$ok" = ok ]
