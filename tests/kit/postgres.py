"""A private PostgreSQL for tests, in a folder of its own: settings of durability stay on."""
import fcntl
import hashlib
import os
import shutil
import subprocess
import tempfile
import threading

from kit import TOP, bin_of, wait_for

BIN_DIR = sorted(p for p in (f"/usr/lib/postgresql/{v}/bin" for v in os.listdir("/usr/lib/postgresql")) if os.path.exists(p + "/initdb"))[-1]
VERSION = BIN_DIR.split("/")[-2]
PSQL = BIN_DIR + "/psql"  # Debian's own in PATH is a script in Perl that looks for it, and takes four times as long


def as_owner(*argv):
    """The command as an unprivileged user, since PostgreSQL refuses to be root's."""
    return (["setpriv", "--reuid=postgres", "--regid=postgres", "--init-groups"] if os.getuid() == 0 else []) + list(argv)


# Memory that a server process has once had, it keeps: to give it back and fault it in again costs more than many statements.
KEEPS = {"MALLOC_TRIM_THRESHOLD_": "67108864", "MALLOC_TOP_PAD_": "1048576", "MALLOC_MMAP_THRESHOLD_": "33554432"}


def run(program, *args, check=True):
    return subprocess.run(as_owner(f"{BIN_DIR}/{program}", *args), check=check, stdout=subprocess.DEVNULL, stderr=None if check else subprocess.DEVNULL,
                          cwd="/tmp", env={**os.environ, **KEEPS}).returncode


def own_folder(path):
    os.makedirs(path, exist_ok=True)
    if os.getuid() == 0:
        shutil.chown(path, "postgres", "postgres")


def new_folder(prefix, disk=False):
    """An empty folder for a cluster: in memory where there is room, since most of what a new database costs is the
    file system's work for its 400 files. disk: below /tmp in any case."""
    memory = "/dev/shm"
    room = os.access(memory, os.W_OK) and os.statvfs(memory)
    in_memory = room and room.f_bavail * room.f_frsize >= 4 << 30
    return tempfile.mkdtemp(prefix=prefix, dir=memory if in_memory and not disk else "/tmp")


def make_data(folder, migrated=False):
    """folder/data of a new cluster whose superuser is drover: a copy of one that the first caller makes for all. migrated: with
    the tables of this tree (migrated_data), since 40 migrations cost each suite half a second of CPU."""
    own_folder(folder)
    template = os.path.join(TOP, "build", "tests", f"initdb-{VERSION}-{os.getuid()}")
    os.makedirs(os.path.dirname(template), exist_ok=True)
    with open(template + ".lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not os.path.exists(template):
            made = folder + "/template"
            run("initdb", "-D", made, "-A", "trust", "-U", "drover", "-E", "UTF8", "--locale=C.UTF-8", "--no-sync")
            shutil.rmtree(template + ".part", ignore_errors=True)
            subprocess.run(["cp", "-a", made, template + ".part"], check=True)
            os.rename(template + ".part", template)
            shutil.rmtree(made)
    subprocess.run(["cp", "-a", migrated_data(folder, template) if migrated else template, folder + "/data"], check=True)


def migrated_data(folder, template):
    """A copy of `template` whose database postgres has every migration, as droverd applied them; `migrated` is another of its
    kind, which nobody connects to. The first caller makes it, once for each content of sql/migrations."""
    migrations = os.path.join(TOP, "sql", "migrations")
    names = hashlib.sha256()
    for name in sorted(os.listdir(migrations)):
        with open(os.path.join(migrations, name), "rb") as f:
            names.update(name.encode() + f.read())
    made = f"{template}-{names.hexdigest()[:16]}"
    with open(made + ".lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not os.path.exists(made):
            work = folder + "/migrated"
            own_folder(work)
            subprocess.run(["cp", "-a", template, work + "/data"], check=True)
            start(work, "")
            subprocess.run([bin_of("release") + "/droverd", "migrate"], env={**os.environ, "DROVER_DATABASE_URL": f"host={work} user=drover dbname=postgres"},
                           check=True, stdout=subprocess.DEVNULL)
            subprocess.run([PSQL, "-Xq", "-h", work, "-U", "drover", "-d", "template1", "-c", "CREATE DATABASE migrated TEMPLATE postgres"], check=True)
            run("pg_ctl", "-D", work + "/data", "-w", "-m", "fast", "stop")
            shutil.rmtree(made + ".part", ignore_errors=True)
            subprocess.run(["cp", "-a", work + "/data", made + ".part"], check=True)
            os.rename(made + ".part", made)
            shutil.rmtree(work)
    return made


def start(folder, options):
    """Starts the cluster below folder, its socket there. After a kill the last children may still hold the shared
    memory: pg_ctl is asked again until they are gone."""
    argv = ["pg_ctl", "-D", folder + "/data", "-w", "-t", "60", "-l", folder + "/log", "-o",
            f"-c listen_addresses='' -c unix_socket_directories={folder} {options}", "start"]
    wait_for(lambda: run(*argv, check=False) == 0, 60, "PostgreSQL")


def stop(folder, mode):
    run("pg_ctl", "-D", folder + "/data", "-w", "-m", mode, "stop", check=False)


class Session:
    """A psql that stays connected: a new one for each statement would cost its start, and a new server process that reads
    the catalog again."""

    END = "-- end of the answer"

    def __init__(self, argv):
        self.busy = threading.Lock()
        self.stderr = tempfile.TemporaryFile("w+")
        self.p = subprocess.Popen(argv, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.stderr)

    def ask(self, text):
        """What the statements print. The first that fails ends psql, as it does alone: RuntimeError with its message."""
        said = []
        try:
            self.p.stdin.write(f"{text}\n;\n\\echo {self.END}\n")
            self.p.stdin.flush()
        except BrokenPipeError:
            pass  # it has ended: why stands in its stderr
        while (line := self.p.stdout.readline()) != self.END + "\n":
            if not line:
                self.p.wait()
                self.stderr.seek(0)
                raise RuntimeError(self.stderr.read())
            said.append(line)
        return "".join(said).strip()

    def close(self):
        self.p.kill()
        self.p.wait()
        for f in (self.p.stdin, self.p.stdout, self.stderr):
            try:
                f.close()
            except BrokenPipeError:
                pass
