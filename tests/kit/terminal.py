"""A program on a pseudo-terminal."""
import fcntl
import os
import pty
import select
import signal
import struct
import termios
import time


def on_terminal(argv, env, columns=80, keys=b"", seconds=20):
    """Returns (all its output, its exit status). keys are typed at the prompt [y/N]. Killed after `seconds`.
    """
    pid, fd = pty.fork()
    if pid == 0:
        fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        os.execve(argv[0], argv, env)
    out, end = b"", time.monotonic() + seconds
    while time.monotonic() < end:
        if select.select([fd], [], [], 0.05)[0]:
            try:
                got = os.read(fd, 65536)
            except OSError:
                break
            if not got:
                break
            out += got
            if keys and b"[y/N]" in out:
                os.write(fd, keys)
                keys = b""
    else:
        os.kill(pid, signal.SIGKILL)
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    os.close(fd)
    return out.decode(), status
