#!/bin/bash
# Coverage of orchestrator/core by its unit tests, the exhaustive model and the wide simulation, and its floor.
# Builds the variant cov, runs them, writes build/cov/report.txt (and report.html with the lines), prints TAP: 95 % of
# core's lines and 90 % of its branches must run. The failing side of an ASSERT is no branch: nothing may reach it.
# usage: cov.sh [report]   report: only reads again what the last run counted
set -u
cd "$(dirname "$0")/.." || exit 1
LINES_MIN=95
BRANCHES_MIN=90
out=build/cov
mkdir -p "$out"
if [ "${1:-}" != report ]; then
    make --no-print-directory -s -j2 VARIANT=cov cov-bins >"$out/build.log" 2>&1 || {
        tail -20 "$out/build.log" | sed 's/^/# /'
        echo "not ok 1 - coverage: the variant builds"
        exit 1
    }
    find "$out" -name '*.gcda' -delete
    {
        VARIANT=cov bash tests/each.sh unit -unit/statistics
        "$out/tests/simulation/exhaustive/exhaustive" --states 50000 --walks 2000
        "$out/tests/simulation/wide/sim" --first 1 --seeds 300 --jobs 1 --shrink 0
        "$out/tests/simulation/wide/scenarios"
    } >"$out/run.log" 2>&1 </dev/null
    if grep -qE '^[[:space:]]*not ok ' "$out/run.log" || [ "$(grep -cE '^[[:space:]]*ok ' "$out/run.log")" -lt 500 ]; then
        grep -E '^[[:space:]]*not ok ' "$out/run.log" | head -5 | sed 's/^/# /'
        echo "not ok 1 - coverage: what is counted passes"
        exit 1
    fi
fi
gcovr -r . --gcov-executable gcov --object-directory "$out" --filter orchestrator/core/ --exclude-branches-by-pattern '\s*ASSERT\(.*' \
    --exclude-unreachable-branches --sort-uncovered --txt "$out/report.txt" --html-details "$out/report.html" \
    --json-summary "$out/report.json" -j 2 "$out/orchestrator/core" >"$out/gcovr.log" 2>&1 || {
    tail -5 "$out/gcovr.log" | sed 's/^/# /'
    echo "not ok 1 - coverage: gcovr reads the counts"
    exit 1
}
python3 - "$out/report.json" "$LINES_MIN" "$BRANCHES_MIN" <<'E2'
import json
import sys

with open(sys.argv[1], encoding="utf-8") as f:
    total = json.load(f)
least = sorted(total["files"], key=lambda f: f["branch_covered"] - f["branch_total"])[:8]
for f in least:
    print("# %s: %d lines and %d branches never run" % (f["filename"], f["line_total"] - f["line_covered"], f["branch_total"] - f["branch_covered"]))
bad = 0
for i, (what, floor) in enumerate((("line", float(sys.argv[2])), ("branch", float(sys.argv[3]))), 1):
    share = 100 * total[what + "_covered"] / max(1, total[what + "_total"])
    good = share >= floor and len(total["files"]) >= 60
    bad += not good
    print("%s %d - coverage of core: %.1f %% of %d %s (>= %.0f %%), %d files" % (
        "ok" if good else "not ok", i, share, total[what + "_total"], {"line": "lines", "branch": "branches"}[what], floor, len(total["files"])))
print("1..2")
sys.exit(bad > 0)
E2
