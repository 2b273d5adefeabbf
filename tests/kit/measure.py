"""What suites of millions of parts ask of a stack: SQL of any size, metrics, and the CPU that droverd and PostgreSQL have taken."""
import os
import subprocess
import time

from kit import postgres


def psql(s, text):
    subprocess.run([postgres.BIN_DIR + "/psql", "-q", "-v", "ON_ERROR_STOP=1", "-h", s.sock, "-U", "drover", "-d", "postgres"], input=text, text=True, check=True,
                   stdout=subprocess.DEVNULL)


def metric(s, name):
    return next((int(line.split()[1]) for line in s.raw("GET", "/metrics")[1].decode().splitlines() if line.startswith(name + " ")), -1)


def cpu_s(pid, ended=False):
    with open(f"/proc/{pid}/stat", encoding="ascii") as f:
        fields = f.read().rsplit(")", 1)[1].split()
    return sum(int(t) for t in fields[11:15 if ended else 13]) / os.sysconf("SC_CLK_TCK")


def processes(s):
    """Numbers of PostgreSQL's first process and of what runs below it, droverd's behind them."""
    with open(s.sock + "/data/postmaster.pid", encoding="ascii") as f:
        first = f.readline().strip()
    pids = subprocess.run(["ps", "-o", "pid=", "--ppid", first], check=True, capture_output=True, text=True).stdout.split()
    return [first, *pids] + ([str(s.procs["droverd0"].pid)] if "droverd0" in s.procs else [])


def all_cpu_s(s):
    """Of droverd and every process of PostgreSQL, those that have ended included."""
    first, *pids = processes(s)
    return cpu_s(first, ended=True) + sum(cpu_s(pid) for pid in pids if os.path.exists(f"/proc/{pid}/stat"))


def used_s(s, pids=None):
    """CPU time of droverd and of all PostgreSQL has running (or of these), to the nanosecond where the kernel counts so."""
    used = 0
    for pid in pids or processes(s):
        try:
            used += time.clock_gettime((~int(pid) << 3) | 2)  # the clock of that process
        except OSError:
            pass  # it has ended
    return used
