#!/usr/bin/python3 -ISE
"""move.py PID CPU: the process and all that it has started keep to that CPU from now on."""
import os
import sys


def move(pid, cpu):
    """Parents before their children: what is started meanwhile keeps to the new one already."""
    try:
        threads = os.listdir(f"/proc/{pid}/task")
        for tid in threads:
            os.sched_setaffinity(int(tid), {cpu})
        for tid in threads:
            with open(f"/proc/{pid}/task/{tid}/children", encoding="ascii") as f:
                for child in f.read().split():
                    move(int(child), cpu)
    except (OSError, ValueError):
        pass  # it has ended


move(int(sys.argv[1]), int(sys.argv[2]))
