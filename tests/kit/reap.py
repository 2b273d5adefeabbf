#!/usr/bin/python3 -ISE
"""reap.py FILE CPU COMMAND...: runs the command on that CPU (-: on any), takes in every process that it leaves behind (daemons,
jobs whose parent was killed), writes the CPU seconds of all of them to FILE and ends those that still live. Its status is the
command's."""
import ctypes
import os
import signal
import sys

PR_SET_CHILD_SUBREAPER = 36


def children():
    with open(f"/proc/self/task/{os.getpid()}/children", encoding="ascii") as f:
        return [int(pid) for pid in f.read().split()]


def name_of(pid):
    try:
        with open(f"/proc/{pid}/comm", encoding="utf-8", errors="replace") as f:
            return f.read().strip()
    except OSError:
        return "gone"


def main():
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    if sys.argv[2] != "-":
        os.sched_setaffinity(0, {int(sys.argv[2])})
    command = os.posix_spawnp(sys.argv[3], sys.argv[3:], os.environ)
    status = None
    while status is None:
        pid, ended = os.wait()
        status = ended if pid == command else None
    left = []
    while pids := children():  # each round takes in the children of those it ended
        for pid in pids:
            if os.waitpid(pid, os.WNOHANG)[0] == 0:
                left.append(name_of(pid))
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
    if left:
        print(f"# left behind and ended: {' '.join(left)}")
    t = os.times()
    with open(sys.argv[1], "w", encoding="ascii") as f:
        f.write(f"{t.children_user:.2f} {t.children_system:.2f}\n")
    sys.exit(os.waitstatus_to_exitcode(status) & 255)


main()
