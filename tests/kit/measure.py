"""What suites of millions of parts ask of a stack: SQL of any size, metrics, and the CPU that droverd and PostgreSQL have taken."""
import os
import subprocess

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


def all_cpu_s(s):
    """Of droverd and every process of PostgreSQL, those that have ended included."""
    with open(s.sock + "/data/postmaster.pid", encoding="ascii") as f:
        first = f.readline().strip()
    pids = subprocess.run(["ps", "-o", "pid=", "--ppid", first], check=True, capture_output=True, text=True).stdout.split()
    pids += [str(s.procs["droverd0"].pid)] if "droverd0" in s.procs else []
    return cpu_s(first, ended=True) + sum(cpu_s(pid) for pid in pids if os.path.exists(f"/proc/{pid}/stat"))
