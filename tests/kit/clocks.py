"""Wall clocks of a test's own: of the processes that preload clock_shift.c, by files that they read at every look at the clock."""
import os
import shutil
import struct

from kit import TOP, VARIANT, postgres

ASAN = {"ASAN_OPTIONS": "verify_asan_link_order=0:" + os.environ.get("ASAN_OPTIONS", "")}


class Clock:
    """The clock of one kind of process: how many seconds it is ahead."""

    def __init__(self, folder, name):
        self.path, self.shim = f"{folder}/{name}", folder + "/clock_shift.so"
        self.set(0)
        os.chmod(self.path, 0o644)

    def set(self, seconds):
        with open(self.path, "r+b" if os.path.exists(self.path) else "wb") as f:
            f.write(struct.pack("q", seconds))

    def env(self):
        return {"LD_PRELOAD": self.shim, "CLOCK_SHIFT_FILE": self.path, **ASAN}

    def around(self, start):
        """Calls start() with the environment of this clock, for programs that take no other."""
        kept = {k: os.environ.get(k) for k in self.env()}
        os.environ.update(self.env())
        try:
            return start()
        finally:
            for k, v in kept.items():
                os.environ.pop(k)
                if v is not None:
                    os.environ[k] = v


def new_folder():
    """With the program to preload; PostgreSQL's user reads it, too."""
    folder = postgres.new_folder("drover-clocks-")
    os.chmod(folder, 0o755)
    shutil.copy(os.path.join(TOP, "build", VARIANT, "tests/kit/clock_shift.so"), folder)
    return folder
