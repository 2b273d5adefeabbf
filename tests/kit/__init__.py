"""Shared by all test programs: paths in the tree, TAP lines, waiting for a condition, a free port."""
import os
import socket
import sys
import threading
import time

sys.dont_write_bytecode = sys.pycache_prefix is None  # nothing in the tree; run.sh names a folder
TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
VARIANT = os.environ.get("VARIANT", "release")
PROGRAMS = os.path.join(TOP, "tests", "kit", "programs")


def bin_of(variant):
    """The folder of that variant's programs."""
    return os.path.join(TOP, "build/bin" if variant == "release" else f"build/{variant}/bin")


BIN = bin_of(VARIANT)


def wanted(name):
    """Is the case of that name to run? All are, or with ONLY=word,word those whose name has one of the words; -word leaves out."""
    words = [w for w in os.environ.get("ONLY", "").split(",") if w]
    only, out = [w for w in words if w[0] != "-"], [w[1:] for w in words if w[0] == "-"]
    return (not only or any(w in name for w in only)) and not any(w in name for w in out)


def cases(names):
    """The functions case_X of a suite's globals that are wanted, in order."""
    return [v for k, v in list(names.items()) if k.startswith("case_") and wanted(k)]


class Tap:
    """TAP lines; the details of a failed check are printed before its line, as comments."""

    def __init__(self):
        self.n = self.bad = 0

    def ok(self, good, what, detail=""):
        self.n += 1
        self.bad += not good
        if not good:
            for line in str(detail)[:6000].splitlines()[:40]:
                print("# " + line)
        print(f"{'ok' if good else 'not ok'} {self.n} - {what}", flush=True)
        return bool(good)

    def eq(self, got, want, what):
        return self.ok(got == want, what, "got  %.2000r\nwant %.2000r" % (got, want))

    def done(self):
        """Prints the plan and returns the program's exit status."""
        print(f"1..{self.n}", flush=True)
        return 1 if self.bad else 0


def patience(seconds):
    """`seconds` on a quiet machine, up to ten times as long on one whose cores are shared: for limits of waits."""
    with open("/proc/loadavg", encoding="ascii") as f:
        load, _, _, running, _ = f.read().split()
    share = max(float(load), int(running.split("/")[0])) / (os.cpu_count() or 1)
    return seconds * min(max(share, 1), 10)


class Lag(threading.Thread):
    """How much longer than they should this process's sleeps of 10 ms have taken: what a busy machine adds to every wait."""

    def __init__(self):
        super().__init__(daemon=True)
        self.seconds = 0.0
        self.start()

    def run(self):
        while True:
            began = time.monotonic()
            time.sleep(0.01)
            self.seconds += time.monotonic() - began - 0.01


def wait_for(condition, seconds=20, what=None, step=0.02):
    """Waits until condition() is true and returns its value. Errors of a service that restarts count as
    false. After `seconds` (patience): TimeoutError when `what` names the condition, otherwise the last value.
    It looks again after `step` seconds, less often the longer it waits, but ten times a second: looking costs CPU
    time here and in the programs that are asked.
    """
    began = time.monotonic()
    while True:
        value = last = None
        try:
            value = condition()
        except (OSError, ValueError, KeyError) as e:
            last = e
        if value:
            return value
        if time.monotonic() - began > seconds and time.monotonic() - began > patience(seconds):
            if what is None:
                return value
            raise TimeoutError(f"{what} did not come within {seconds} s ({last})")
        time.sleep(max(step, min(0.1, (time.monotonic() - began) / 20)))


def wait_moving(condition, progress, what, seconds=120, step=0.3):
    """Waits until condition() is true and returns its value, for as long as progress() changes. When it has
    not changed for `seconds` (patience): TimeoutError. Errors of a service that restarts are no change.
    """
    seen, since = None, time.monotonic()
    while True:
        try:
            value = condition()
            if value:
                return value
            now = progress()
        except (OSError, ValueError, KeyError):
            now = seen
        if now != seen:
            seen, since = now, time.monotonic()
        elif time.monotonic() - since > seconds and time.monotonic() - since > patience(seconds):
            raise TimeoutError(f"{what}: nothing has moved for {time.monotonic() - since:.0f} s ({seen})")
        time.sleep(step)


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]
