#!/usr/bin/env python3
"""bench.jsonl as a table beside what was aimed at; exit 1 when a figure is missing. A figure that misses its aim is said, not failed:
it may be the machine. Usage: table.py FILE"""
import json
import sys

AIMS = {  # name: (at least, at most)
    "parts_insert_per_s": (250000, None), "claim_complete_per_s_100": (150000, None), "claim_complete_per_s_1000": (300000, None),
    "slot_free_to_create_ms_p50": (None, 200), "slot_free_to_create_ms_p99": (None, 1000),
    "summary_get_us_p99": (None, 1000), "droverd_rss_mb": (None, 128),
    "decision_ms_p99_1m": (None, 5), "bytes_per_waiting_task": (None, 64),
    "makespan_ratio_known": (None, 1.02), "makespan_ratio_sized": (None, 1.04), "makespan_ratio_fail3": (None, 1.06),
    "warm_reuse_ratio": (0.95, None), "warm_idle_cost_ratio": (None, 0.1), "warm_pool_outlived_s": (None, 10), "warm_savings_instance_h": (None, None),
    "cause_of_text": (None, 50), "forecast_s_1m": (None, 5), "forecast_inside_percent": (75, 85), "forecast_plan_near_percent": (95, None),
    "forecast_plan_needs_parts_percent": (100, None),
    "gang_by_promise": (0.93, None), "gang_promise_ratio": (None, 1.25), "gang_idle_ratio": (None, 0.25), "gang_backfill_broken": (None, 0),
    "gang_by_promise_uniform": (0.93, None), "gang_promise_ratio_uniform": (None, 1.25), "gang_idle_ratio_uniform": (None, 0.25),
    "gang_longest_hunger": (None, 28800), "gang_longest_hunger_full": (None, 28800),
    "sim_attempt_lives_per_cpu_s": (10000, None), "sim_campaign_years_per_cpu_min": (None, None),
    "makespan_ratio_fifo": (None, None), "makespan_ratio_notebook": (None, None)}


def main():
    with open(sys.argv[1]) as f:
        rows = {r["name"]: r for r in map(json.loads, f)}
    print(f"\n{'figure':32} {'value':>12} {'unit':8} {'aim':>12}")
    for name, r in rows.items():
        least, most = AIMS.get(name, (None, None))
        aim = f">= {least}" if least is not None else f"<= {most}" if most is not None else ""
        missed = (least is not None and r["value"] < least) or (most is not None and r["value"] > most)
        print(f"{name:32} {r['value']:>12} {r['unit']:8} {aim:>12}{'  missed' if missed else ''}")
    missing = [n for n in AIMS if n not in rows]
    if missing:
        sys.exit("bench: no figure for " + ", ".join(missing))


if __name__ == "__main__":
    main()
