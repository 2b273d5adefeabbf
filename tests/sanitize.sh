#!/bin/bash
# Runs a command with programs of a sanitizer's build: sanitize.sh asan|tsan [NAME=VALUE...] [COMMAND...]
# asan includes UBSan and LeakSanitizer. Builds the variant first (one at a time builds), then runs the command with
# VARIANT set and adds one TAP line: no process reported anything. SANITIZED=GOAL builds less. Reports of all processes go to
# files of their own, so none is lost with a killed process; build/VARIANT/reports/PID keeps them.
set -u
cd "$(dirname "$0")/.." || exit 1
variant=${1:-}
case $variant in asan | tsan) shift ;; *) echo "usage: sanitize.sh asan|tsan COMMAND..." >&2; exit 2 ;; esac
top=$PWD
dir=$top/build/$variant/reports/$$
rm -rf "$dir"
mkdir -p "$dir"
export VARIANT=$variant
export ASAN_OPTIONS="detect_leaks=1:exitcode=99:allocator_may_return_null=1:log_path=$dir/report"
export UBSAN_OPTIONS="print_stacktrace=1:halt_on_error=1:exitcode=99:log_path=$dir/report"
export TSAN_OPTIONS="exitcode=66:second_deadlock_stack=1:suppressions=$top/tests/tsan.supp:log_path=$dir/report"

if ! flock "build/$variant.lock" make --no-print-directory -s -j2 VARIANT="$variant" "${SANITIZED:-sanitized-bins}" >"$dir/build.log" 2>&1; then
    tail -20 "$dir/build.log" | sed 's/^/# /'
    echo "not ok - the $variant variant builds"
    exit 1
fi
[ $# != 0 ] || { echo "ok - the $variant variant builds"; exit 0; }
# Kernels that move mappings further than this runtime knows need a fixed layout; some sandboxes forbid asking for it.
run=()
probe=("build/$variant/bin/droverd" --version)
[ -x "${probe[0]}" ] || probe=("build/$variant/tests/fuzz/replay_url" /dev/null)
if ! "${probe[@]}" >/dev/null 2>&1; then
    run=(setarch "$(uname -m)" -R)
fi
trap 'cat "$dir/log"; exit 124' TERM
"${run[@]}" env "$@" >"$dir/log" 2>&1 </dev/null
status=$?
cat "$dir/log"
REPORTS='ERROR: AddressSanitizer|ERROR: LeakSanitizer|runtime error:|(WARNING|FATAL|ERROR): ThreadSanitizer'
mapfile -t reports < <(grep -lE "$REPORTS" "$dir/log" "$dir"/report.* 2>/dev/null)
if [ ${#reports[@]} = 0 ]; then
    echo "ok - $variant: no process reported anything"
    rm -rf "$dir"
else
    for f in "${reports[@]:0:5}"; do grep -E -A 25 "$REPORTS" "$f" | head -25 | cut -c1-200 | sed 's/^/# /'; done
    echo "not ok - $variant: ${#reports[@]} reports, see $dir"
    status=1
fi
exit $status
