#!/bin/bash
# The suites meant for a sanitizer: sanitize.sh asan|tsan [quick].
# asan (with UBSan and LeakSanitizer): every unit and integration program, the API's and the worker's tests against
# programs of that variant, the fuzzers' corpora, one campaign in full motion and one case after the other of an AWS
# that misbehaves. tsan: log, loop, store, API, the worker's threads and the campaign. quick leaves the campaigns out.
# One TAP line a program: "ok" is status 0, TAP lines without a "not ok", and no report in anything it or its servers
# wrote. Reports of all processes go to files of their own, so none is lost with a killed process. Programs mostly wait
# (for PostgreSQL, for deadlines), so LANES of them run at once.
set -u
cd "$(dirname "$0")/.." || exit 1
variant=${1:-}
mode=${2:-}
LANES=4
case $variant in asan | tsan) ;; *) echo "usage: sanitize.sh asan|tsan [quick]" >&2; exit 2 ;; esac
top=$PWD
dir=$top/build/$variant/sanitize
rm -rf "$dir"
mkdir -p "$dir"
export VARIANT=$variant
export ASAN_OPTIONS="detect_leaks=1:exitcode=99:allocator_may_return_null=1:log_path=$dir/report"
export UBSAN_OPTIONS="print_stacktrace=1:halt_on_error=1:exitcode=99:log_path=$dir/report"
export TSAN_OPTIONS="exitcode=66:second_deadlock_stack=1:suppressions=$top/tests/tsan.supp:log_path=$dir/report"

list() { # list FOLDER PATTERN: test programs, as make calls them
    find tests/"$1" -name "$2" | sort | while read -r f; do echo "build/$variant/${f%.c}"; done
}
bin=build/$variant/bin
if [ "$variant" = asan ]; then
    # Without the statistics of whole campaigns: simulation/hash.sh runs the same code under ASan.
    mapfile -t programs < <(list unit 'test_*.c' | grep -v /statistics/
        list integration 'test_*.c')
    # Not what is long on purpose, nor what mostly waits and is seen by tsan.
    mapfile -t scripts < <(ls tests/integration/worker/worker_*.py | grep -vE '_(soak|hosts|blur|s3_faults)\.py$')
    targets=("$bin/droverd" "$bin/drover-worker" "$bin/drover" "build/asan/tests/kit/worker_fixture" build/asan/tests/kit/connect_log.so fuzz-replays)
else
    mapfile -t programs < <(list unit test_log.c; list integration 'test_store_*.c'; list integration test_loop.c)
    scripts=()
    targets=("$bin/droverd" "$bin/drover-worker" "$bin/drover" "build/tsan/tests/kit/worker_fixture")
fi
scripts+=(tests/integration/api/api_*.py)
mapfile -t programs < <(for p in "${programs[@]}"; do [ -f "${p#build/"$variant"/}.c" ] && echo "$p"; done)
if ! make --no-print-directory -s -j2 VARIANT="$variant" "${targets[@]}" "build/$variant/tests/kit/api_server" "${programs[@]}" >"$dir/build.log" 2>&1; then
    echo "not ok 1 - the $variant variant builds"
    tail -20 "$dir/build.log" | sed 's/^/# /'
    echo 1..1
    exit 1
fi
# Kernels that move mappings further than this runtime knows need a fixed layout; some sandboxes forbid asking for it.
run=()
if ! "$bin/droverd" --version >/dev/null 2>&1; then
    run=(setarch "$(uname -m)" -R)
fi

one() { # one NAME SECONDS COMMAND...: status and output into files
    local name=$1 limit=$2
    shift 2
    local began=$SECONDS
    timeout -k 10 "$limit" "${run[@]}" "$@" >"$dir/$name.log" 2>&1 </dev/null
    echo "$? $((SECONDS - began))" >"$dir/$name.status"
}
names=()
start() { # start NAME SECONDS COMMAND...: one more beside the others, when a lane is free
    names+=("$1")
    while [ "$(jobs -rp | wc -l)" -ge "$LANES" ]; do wait -n; done
    one "$@" &
}
make --no-print-directory -s -j2 VARIANT=release all demo >>"$dir/build.log" 2>&1 # drover-local and the like
[ "$variant" = asan ] || start worker_lanes 300 tests/integration/worker/worker_hosts.py test_lanes
if [ "$mode" != quick ]; then # the long ones first
    start campaign 300 python3 tests/integration/controller/sanitized.py "$variant"
    [ "$variant" = tsan ] || start controller_faults 300 tests/crash/controller_faults.py
    [ "$variant" = tsan ] || start controller_scheduler 300 tests/integration/controller/controller_scheduler.py
fi
for p in "${programs[@]}"; do case $p in */integration/*) start "$(basename "$p")" 300 "$p" ;; esac; done
for s in "${scripts[@]}"; do start "$(basename "$s" .py)" 300 "$s"; done
for p in "${programs[@]}"; do case $p in */unit/*) start "$(basename "$p")" 120 "$p" ;; esac; done
[ "$variant" = tsan ] || start fuzz_replay 300 bash tests/fuzz/run.sh replay
wait

REPORTS='ERROR: AddressSanitizer|ERROR: LeakSanitizer|runtime error:|(WARNING|FATAL|ERROR): ThreadSanitizer'
n=0
bad=0
for name in "${names[@]}"; do
    n=$((n + 1))
    read -r status seconds <"$dir/$name.status" || status=none
    checks=$(grep -cE '^[[:space:]]*ok ' "$dir/$name.log")
    if [ "$status" = 0 ] && [ "$checks" -gt 0 ] && ! grep -qE "^[[:space:]]*not ok |$REPORTS" "$dir/$name.log"; then
        echo "ok $n - $variant: $name, $checks checks, $seconds s"
    else
        bad=$((bad + 1))
        grep -E "^[[:space:]]*not ok |$REPORTS" "$dir/$name.log" | head -5 | sed 's/^[[:space:]]*/# /'
        tail -15 "$dir/$name.log" | cut -c1-300 | sed 's/^/# /'
        echo "not ok $n - $variant: $name ended with status $status, $checks checks passed"
    fi
done
n=$((n + 1))
mapfile -t reports < <(grep -lE "$REPORTS" "$dir"/report.* 2>/dev/null)
if [ ${#reports[@]} = 0 ]; then
    echo "ok $n - $variant: no process reported anything"
else
    bad=$((bad + 1))
    for f in "${reports[@]:0:5}"; do head -25 "$f" | cut -c1-200 | sed 's/^/# /'; done
    echo "not ok $n - $variant: ${#reports[@]} reports, see build/$variant/sanitize/report.*"
fi
echo "1..$n"
[ "$bad" = 0 ]
