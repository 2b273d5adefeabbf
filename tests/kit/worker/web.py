"""Web servers below HTTP: certificates, ports nobody listens on, hosts that accept no more connections, hosts
that send given bytes and then fall silent.
"""
import socket
import struct
import subprocess
import threading
import time


def certificate(d, name):
    """A self-signed certificate and its key, files below d."""
    cert, key = "%s/%s.pem" % (d, name), "%s/%s.key" % (d, name)
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=" + name,
                    "-addext", "subjectAltName=DNS:" + name, "-keyout", key, "-out", cert], check=True, capture_output=True)
    return cert, key


def shut_port(addr):
    """A port that refuses connections: bound, so that no other program gets it, and not listening."""
    s = socket.socket()
    s.bind((addr, 0))
    return s


def deaf(addr):
    """A port that answers no SYNs: its backlog is full. Keep the returned sockets that fill it."""
    s = socket.socket()
    s.bind((addr, 0))
    s.listen(0)
    fill = []
    for _ in range(4):
        c = socket.socket()
        c.setblocking(False)
        c.connect_ex(s.getsockname())
        fill.append(c)
    return s, fill


class Raw:
    """Takes a request and sends these bytes, then closes (close, or no bytes), falls silent, or continues
    with drip, 1 kB four times a second. None: silent from the start. RESET: resets.
    """
    RESET = object()

    def __init__(self, addr, says, close=False, drip=False):
        self.says, self.close, self.drip = says, close or says == b"", drip
        self.sock = socket.create_server((addr, 0), backlog=256)
        self.net = "%s:%d" % self.sock.getsockname()
        self.held = []
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            c, _ = self.sock.accept()
            threading.Thread(target=self.serve, args=(c,), daemon=True).start()

    def serve(self, c):
        try:
            got = b""
            while b"\r\n\r\n" not in got:
                piece = c.recv(4096)
                if not piece:
                    break
                got += piece
            if self.says is Raw.RESET:
                c.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                c.close()
                return
            if self.says:
                c.sendall(self.says)
            if self.close:
                c.close()
                return
            while self.drip:
                c.sendall(b"d" * 1024)
                time.sleep(0.25)
        except OSError:
            pass
        self.held.append(c)
