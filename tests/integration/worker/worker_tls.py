#!/usr/bin/python3
"""Aim: https costs only the necessary work: CA certificates are read once per run, a known host is greeted
with its session, an open connection is reused; and no forbidden transfer gets through. Method: a server
that counts handshakes, resumed ones and connections, in both versions of TLS; a library preloaded into the
worker that records the files OpenSSL opens.
"""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
from kit.worker import *

tap = Tap()
PHOTO = encode(photo(90, 70, 1), "JPEG")
PRELOAD = os.path.join(TOP, "build", VARIANT, "tests", "kit", "connect_log.so")
ROWS = 40


class Tls:
    """Answers every request with a picture. handshakes: whether each resumed a session."""

    def __init__(self, cert, key, keep, version, **choices):
        self.keep, self.handshakes, self.refused = keep, [], []
        self.ctx = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.ctx.load_cert_chain(cert, key)
        self.ctx.minimum_version = self.ctx.maximum_version = version
        self.sock = socket.create_server(("127.0.0.5", 0), backlog=256)
        self.net = "127.0.0.5:%d" % self.sock.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            c, _ = self.sock.accept()
            threading.Thread(target=self.talk, args=(c,), daemon=True).start()

    def talk(self, c):
        try:
            with self.ctx.wrap_socket(c, server_side=True) as s, s.makefile("rb") as lines:
                self.handshakes.append(s.session_reused)
                while lines.readline(65536):
                    while lines.readline(65536).strip():
                        pass
                    s.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n%s\r\n"
                              % (len(PHOTO), b"" if self.keep else b"Connection: close\r\n") + PHOTO)
                    if not self.keep:
                        s.unwrap()
                        return
        except OSError as e:
            self.refused.append(str(e))


def certificate(d, name):
    cert, key = [os.path.join(d, name + x) for x in (".pem", ".key")]
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
                    "-days", "2", "-subj", "/CN=" + name, "-addext", "subjectAltName=IP:127.0.0.5", "-keyout", key, "-out",
                    cert], check=True, capture_output=True)
    return cert, key


def work(d, name, server, authorities, *args):
    """{error text or 'success': rows} and the files that were opened."""
    part, out, log = [os.path.join(d, name + x) for x in (".parquet", "", ".log")]
    make_parquet(part, [{"url": "https://%s/%d" % (server.net, i)} for i in range(ROWS)], {"url": "VARCHAR"})
    open(log, "w").close()
    env = {"LD_PRELOAD": PRELOAD, "FILE_LOG": log, "SSL_CERT_FILE": authorities}
    if VARIANT == "asan":
        env["ASAN_OPTIONS"] = "verify_asan_link_order=0:" + os.environ.get("ASAN_OPTIONS", "")
    rc, _, err = run(["--parquet", part, "--output", out, "--allow-net", server.net] + list(args), env=env)
    tap.ok(rc == 0, "%s: the worker ends well" % name, err)
    with open(log) as f:
        opened = [x.split(" ", 1)[1].strip() for x in f]
    return load(out, "00000_stats.json")["status_dict"], opened


def main():
    with Folder() as d:
        cert, key = certificate(d, "ours")
        other, _ = certificate(d, "other")
        # as many CAs as a system has, so that reading them repeatedly would cost
        many = os.path.join(d, "many.pem")
        with open(many, "w") as f:
            f.write(open(other).read() * 100 + open(cert).read())
        for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
            name = version.name
            s = Tls(cert, key, False, version)
            got, opened = work(d, name, s, many, "--host_connections", 1)
            tap.eq((got, len(s.handshakes)), ({"success": ROWS}, ROWS), "%s: a connection for each row" % name)
            tap.ok(s.handshakes.count(True) >= ROWS - 4, "%s: sessions are resumed: %d of %d handshakes"
                   % (name, s.handshakes.count(True), ROWS))
            tap.eq(opened.count(many), 1, "%s: the file of authorities is read once" % name)
            tap.eq([x for x in opened if x.startswith("/etc/ssl/certs/") and x != "/etc/ssl/certs/ca-certificates.crt"], [],
                   "%s: no folder of certificates is searched" % name)
            s = Tls(cert, key, True, version)
            got, _ = work(d, name + "-kept", s, many, "--host_connections", 2)
            tap.ok(got == {"success": ROWS} and len(s.handshakes) <= 2, "%s: connections that stay are used again" % name,
                   (got, len(s.handshakes)))
            s = Tls(cert, key, False, version)
            got, _ = work(d, name + "-unknown", s, other)
            tap.eq(got, {"<urlopen error [SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed>": ROWS},
                   "%s: an authority that is not in the file signs for nobody" % name)
            got, _ = work(d, name + "-ignored", s, other, "--ignore_ssl_certificate", "true")
            tap.eq(got, {"success": ROWS}, "%s: unless certificates are not looked at" % name)
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
