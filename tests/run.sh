#!/bin/bash
# Runs the suites of tests/suites.tsv: run.sh check|test|long, or run.sh GLOB for those whose name matches.
# Prints a line for each suite as it ends, with what a failed one said last, and at the end, alone on a line,
# "N passed, N failed": TAP lines. A suite that ends badly without a "not ok" line counts as one failure, one that
# prints no TAP line too. Several suites run at once (tests/README.md: lanes). Output: build/test/NAME.log.
set -u
cd "$(dirname "$0")/.." || exit 1
want=${1:-test}
out=build/test
mkdir -p build
exec 9>build/test.lock
flock -n 9 || { echo "another run of the tests uses this tree"; echo "0 passed, 1 failed"; exit 1; }
# RESUME=1 goes on with a run that was ended, when the tree is still the same: what passed is counted and not run again.
tree=$({ git rev-parse HEAD && git diff HEAD; } 2>/dev/null | sha1sum)
if [ -z "${RESUME:-}" ] || [ "$(cat "$out/.tree" 2>/dev/null)" != "$want $tree" ]; then
    rm -rf "$out"
fi
mkdir -p "$out" build/path
echo "$want $tree" >"$out/.tree"
# Debian's python3 is everybody's, and what it compiles of the kit is kept: a version manager's takes 0.15 s to start.
ln -sf /usr/bin/python3 build/path/python3
export PATH=$PWD/build/path:$PATH PYTHONPYCACHEPREFIX=$PWD/build/pycache
unset PYTHONDONTWRITEBYTECODE
MAX_CPU=2  # suites that keep a core busy, while no other waits to run
# Suites that mostly wait: one more at a time, up to 8, while a fifth of the machine is idle, and one fewer, down to 2, while
# none of it is. More than it can carry make each other slower, and fail those that count seconds.
MAX_WAIT=3
MORE_CPU=0 # of those that keep a core busy, 1 when it is idle with all that may wait
# A suite is some processes that wait for each other's words. On one core they cost a sixth to a third less than on two: a
# virtual machine pays dearly for waking another core and for telling it of each change of the memory's map.
mapfile -t CPUS < <(python3 -ISc 'import os; print(*sorted(os.sched_getaffinity(0)), sep="\n")')
declare -A load_of=() core_of=() idle_of=() rested=() weight_of=([cpu]=3 [wait]=1 [alone]=0)
for core in "${CPUS[@]}"; do load_of[$core]=0; done
balanced=0 # when it was last looked at
start=$SECONDS
# Jiffies of all cores since boot: idle ones, all, and those that the host of a virtual machine gave to others ("stolen").
jiffies() { awk '/^cpu / {print $5 + $6, $2 + $3 + $4 + $5 + $6 + $7 + $8 + $9, $9}' /proc/stat; }
read -r idle_at_start all_at_start stolen_at_start < <(jiffies)
idle_before=$idle_at_start all_before=$all_at_start

# suite NAME LIMIT CORE COMMAND: its output into a file, its counts into another, one line to the terminal
suite() {
    local name=$1 limit=$2 core=$3 command=$4 began=$SECONDS rc ok bad cpu
    tests/kit/reap.py "$out/$name.cpu" "$core" timeout -k 10 "$limit" bash -c "$command" >"$out/$name.log" 2>&1 </dev/null 9>&-
    rc=$?
    cpu=$(awk '{printf "%.1f", $1 + $2}' "$out/$name.cpu")
    ok=$(grep -cE '^[[:space:]]*ok ' "$out/$name.log")
    bad=$(grep -cE '^[[:space:]]*not ok ' "$out/$name.log")
    if [ $((ok + bad)) = 0 ] || { [ $rc != 0 ] && [ "$bad" = 0 ]; }; then
        bad=$((bad + 1))
        echo "not ok - $name ended with status $rc after $((SECONDS - began)) of $limit s and $ok passed" >>"$out/$name.log"
    fi
    echo "$ok $bad $((SECONDS - began)) $cpu" >"$out/$name.count"
    printf '%-30s %4d passed %3d failed %5d s %7.1f s of CPU\n' "$name" "$ok" "$bad" $((SECONDS - began)) "$cpu"
    [ "$bad" = 0 ] || red "$name" 60
}

# red NAME LINES: the last lines round what failed in a suite
red() {
    grep -nE -B 12 -A 2 '^[[:space:]]*not ok ' "$out/$1.log" | tail -"$2" | cut -c1-400 | sed 's/^/    /'
    tail -5 "$out/$1.log" | cut -c1-400 | sed 's/^/    ... /'
}

# The rows to run, in the table's order; those of the check tier first. The sanitizers named in a row run it once more.
rows() {
    awk -F '\t' -v OFS='\t' -v want="$want" '
        /^#/ || NF < 6 { next }
        function row(at, tier, name, lane, limit, command) { print (tier == "check" ? 0 : 1), at, name, tier, lane, limit, command }
        # A suite of an area that ASan also runs is run in the long tier by ASan alone.
        !(want == "long" && $2 == "area" && $5 ~ /asan/) { row(NR, $2, $1, $3, $4, $6) }
        { n = split($5, also, ",")
          for (i = 1; i <= n; i++) if (also[i] != "-") {
              tier = also[i] ~ /:long$/ ? "long" : $2 == "check" ? "test" : $2
              variant = also[i]; sub(/:long$/, "", variant)
              # Some rows later: the variant is built meanwhile. In the long tier they are the short ones.
              row(NR + (tier == "long" ? 1000 : $2 == "check" ? 34 : 8), tier, variant "-" $1, $3, $4 + 600, "bash tests/sanitize.sh " variant " " $6)
          } }' tests/suites.tsv | sort -t "$(printf '\t')" -s -k1,1n -k2,2n | cut -f3- |
        while IFS=$'\t' read -r name tier lane limit command; do
            case $want in
            check) [ "$tier" = check ] || continue ;;
            test) [[ $tier = check || $tier = test ]] || continue ;;
            long) [[ $tier = area || $tier = long || $name = build ]] || continue ;;
            *)
                # shellcheck disable=SC2053 # a glob is meant
                if [ "$name" != build ] && [ "$name" != "$want" ]; then
                    [[ $name == $want && $tier != long ]] || continue
                fi
                ;;
            esac
            if [ "$name" != build ] && [[ $(cat "$out/$name.count" 2>/dev/null) == [1-9]*\ 0\ * ]]; then continue; fi
            printf '%s\t%s\t%s\t%s\n' "$name" "$lane" "$limit" "$command"
        done
}

mapfile -t queue < <(rows)
[ ${#queue[@]} -gt 1 ] || [ -n "${RESUME:-}" ] || { echo "no suite is named $want"; echo "0 passed, 1 failed"; exit 1; }
declare -A lane_of=() running=([cpu]=0 [wait]=0 [alone]=0)

# next LANE: the first suite of that lane that has not run yet; its index in $found
next() {
    for found in "${!queue[@]}"; do
        [[ ${queue[found]} == *$'\t'"$1"$'\t'* ]] && return 0
    done
    return 1
}
# core_for NAME LANE: the one with the least to do; -: any, for what has the machine to itself, for builds, which others wait
# for, and where races are looked for
core_for() {
    local core least=${CPUS[0]}
    if [ "$2" = alone ] || [[ $1 = tsan-* || $1 = build-* ]]; then
        echo -
        return
    fi
    for core in "${CPUS[@]}"; do
        [ "${load_of[$core]}" -ge "${load_of[$least]}" ] || least=$core
    done
    echo "$least"
}
launch() {
    local name lane limit command core
    IFS=$'\t' read -r name lane limit command <<<"${queue[$1]}"
    unset "queue[$1]"
    core=$(core_for "$name" "$lane")
    suite "$name" "$limit" "$core" "$command" &
    lane_of[$!]=$lane core_of[$!]=$core
    [ "$core" = - ] || load_of[$core]=$((load_of[$core] + weight_of[$lane]))
    running[$lane]=$((running[$lane] + 1))
}
# Moves one suite from the core that was busiest to one that was idle for a third more of the last seconds. 100 jiffies a second.
balance() {
    local seconds=$((SECONDS - balanced)) core idle busiest='' idlest='' pid
    while read -r core idle; do
        [ -n "${load_of[$core]:-}" ] || continue
        local was=${idle_of[$core]:-$idle}
        idle_of[$core]=$idle rested[$core]=$((idle - was))
        [ -n "$busiest" ] && [ "${rested[$core]}" -ge "${rested[$busiest]}" ] || busiest=$core
        [ -n "$idlest" ] && [ "${rested[$core]}" -le "${rested[$idlest]}" ] || idlest=$core
    done < <(awk '/^cpu[0-9]/ {print substr($1, 4), $5 + $6}' /proc/stat)
    balanced=$SECONDS
    [ $((${rested[$idlest]} - ${rested[$busiest]})) -gt $((seconds * 100 / 3)) ] || return
    for pid in "${!core_of[@]}"; do
        if [ "${core_of[$pid]}" = "$busiest" ] && [ "${load_of[$busiest]}" -gt "${weight_of[${lane_of[$pid]}]}" ]; then
            tests/kit/move.py "$pid" "$idlest"
            core_of[$pid]=$idlest
            load_of[$busiest]=$((load_of[$busiest] - weight_of[${lane_of[$pid]}]))
            load_of[$idlest]=$((load_of[$idlest] + weight_of[${lane_of[$pid]}]))
            return
        fi
    done
}
fits() { # starts one suite if one may start now
    local all=$((running[cpu] + running[wait] + running[alone])) cpu_max=$MAX_CPU first
    first=${!queue[*]}
    first=${first%% *}
    [ -n "$first" ] && [ "${running[alone]}" = 0 ] || return 1
    if [[ ${queue[first]} == *$'\talone\t'* ]]; then
        [ "$all" = 0 ] && launch "$first"
        return
    fi
    if next wait || [ "${running[wait]}" -gt 2 ]; then
        cpu_max=1
    fi
    cpu_max=$((cpu_max + MORE_CPU))
    if [ "${running[cpu]}" -lt "$cpu_max" ] && next cpu; then
        launch "$found"
    elif [ "${running[wait]}" -lt "$MAX_WAIT" ] && next wait; then
        launch "$found"
    else
        return 1
    fi
}
while :; do
    while fits; do
        if [ "${running[alone]}" != 0 ]; then break; fi
    done
    [ $((running[cpu] + running[wait] + running[alone])) != 0 ] || break
    sleep 5 9>&- &
    tick=$!
    wait -n -p ended
    if [ "$ended" = "$tick" ]; then
        read -r idle all _ < <(jiffies)
        if [ $((5 * (idle - idle_before))) -gt $((all - all_before)) ]; then
            if [ $MAX_WAIT -lt 8 ] && next wait; then MAX_WAIT=$((MAX_WAIT + 1)); else MORE_CPU=1; fi
        elif [ $((25 * (idle - idle_before))) -lt $((all - all_before)) ] && [ $MAX_WAIT -gt 2 ]; then
            MAX_WAIT=$((MAX_WAIT - 1))
            MORE_CPU=0
        fi
        idle_before=$idle all_before=$all
        balance
        continue
    fi
    kill "$tick"
    wait "$tick" 2>/dev/null
    lane=${lane_of[$ended]}
    running[$lane]=$((running[$lane] - 1))
    core=${core_of[$ended]}
    unset "core_of[$ended]"
    [ "$core" = - ] || load_of[$core]=$((load_of[$core] - weight_of[$lane]))
    if [ -f "$out/build.count" ] && [ "$(cut -d' ' -f2 "$out/build.count")" != 0 ]; then
        break
    fi
done
wait
read -r idle all stolen < <(jiffies)
all=$((all - all_at_start + 1))
# Once more, where somebody who has only the end of it looks.
for count in "$out"/*.count; do
    read -r _ bad _ <"$count"
    [ "$bad" = 0 ] || { echo "failed: $(basename "$count" .count)" && red "$(basename "$count" .count)" 15; }
done
cat "$out"/*.count | awk -v s=$((SECONDS - start)) -v idle=$((100 * (idle - idle_at_start) / all)) -v stolen=$((100 * (stolen - stolen_at_start) / all)) '{ok += $1; bad += $2; wall += $3; cpu += $4}
    END {printf "total %d s, suites one after the other %d s, CPU %d s, the machine idle for %d %%, its host took %d %%\n%d passed, %d failed\n", s, wall, cpu, idle, stolen, ok, bad; exit bad != 0}'
