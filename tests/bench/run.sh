#!/usr/bin/env bash
# Every benchmark, one after the other: build/bench.jsonl, one object a line, and a table to look at.
set -u -o pipefail
cd "$(dirname "$0")/../.." || exit 1
make --no-print-directory bench-bins simulator demo || exit 1
mkdir -p build/bench
out=build/bench.jsonl
: >"$out"
status=0
build/release/bench/bench_store "${TMPDIR:-/tmp}/drover-bench-$$" | tee -a "$out" || status=1
build/release/bench/bench_cause | tee -a "$out" || status=1
build/release/bench/bench_sched | tee -a "$out" || status=1
build/release/bench/bench_gang | tee -a "$out" || status=1
build/release/bench/bench_packing | tee -a "$out" || status=1
build/release/bench/bench_warm | tee -a "$out" || status=1
build/release/bench/bench_forecast | tee -a "$out" || status=1
build/release/tests/simulation/wide/sim --bench --seeds 300 | tee -a "$out" || status=1
python3 tests/bench/bench_system.py | tee -a "$out" || status=1
rm -rf "${TMPDIR:-/tmp}/drover-bench-$$"
python3 tests/bench/table.py "$out" || status=1
exit $status
