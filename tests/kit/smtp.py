"""A mail server for tests, by RFC 5321 and not by curl: STARTTLS or TLS from the start with a certificate of openssl, AUTH PLAIN and LOGIN,
answers by the name of the recipient: `later` is refused with 451 after the message three times for each Message-ID, `never` with 550 at
RCPT, `grey` with 450 there twice, `spam` with 554 after the message, `mute` gets no answer to QUIT. `said` has every command with whether TLS hid it."""
import base64
import email
import email.policy
import os
import socket
import ssl
import subprocess
import threading
import time


def certificate(folder, host="127.0.0.1"):
    """A self-signed certificate for an address: paths of (certificate, key)."""
    cert, key = os.path.join(folder, "smtp.pem"), os.path.join(folder, "smtp.key")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj", "/CN=mail of tests",
                    "-addext", f"subjectAltName=IP:{host}", "-keyout", key, "-out", cert], check=True, capture_output=True)
    return cert, key


class Mail:
    def __init__(self, sender, to, data):
        self.sender, self.to, self.data, self.at = sender, to, data, time.time()
        self.parsed = email.message_from_bytes(data, policy=email.policy.default)

    def __getitem__(self, header):
        return self.parsed[header]

    def text(self):
        return self.parsed.get_content()

    def __repr__(self):
        return f"{self.to}: {self.data!r}"


class Server:
    """mode: starttls, smtps, or plain, which offers no TLS. users: {name: password}; empty: nobody has to say who he is."""

    def __init__(self, cert, mode="starttls", users=None):
        self.mode, self.users = mode, users or {}
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(*cert)
        self.mails, self.said, self.tries, self.lock = [], [], {}, threading.Lock()
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.port = self.socket.getsockname()[1]
        self.url = f"{'smtps' if mode == 'smtps' else 'smtp'}://127.0.0.1:{self.port}"
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            threading.Thread(target=self.session, args=(self.socket.accept()[0],), daemon=True).start()

    def session(self, connection):
        try:
            connection.settimeout(60)
            Session(self, connection).run()
        except (OSError, ValueError):  # who ends in the middle, or speaks no TLS
            pass
        finally:
            connection.close()

    def of(self, to):
        with self.lock:
            return [m for m in self.mails if f"{to}@example.com" in m.to]


class Session:
    def __init__(self, server, connection):
        self.server, self.tls, self.who = server, False, None
        self.sender, self.to = None, []
        self.open(connection)
        if server.mode == "smtps":
            self.secure()

    def open(self, connection):
        self.connection, self.file = connection, connection.makefile("rb")

    def secure(self):
        self.open(self.server.context.wrap_socket(self.connection, server_side=True))
        self.tls = True

    def answer(self, text):
        self.connection.sendall(text.encode() + b"\r\n")

    def line(self):
        line = self.file.readline(65536)
        if not line.endswith(b"\r\n"):
            raise ValueError("a line without its end")
        return line[:-2].decode()

    def run(self):
        self.answer("220 mail of tests")
        while True:
            line = self.line()
            with self.server.lock:
                self.server.said.append((self.tls, line))
            verb, _, rest = line.partition(" ")
            if verb == "QUIT":
                if "mute@example.com" not in self.to:
                    self.answer("221 bye")
                else:
                    self.file.readline()
                return
            getattr(self, "do_" + verb.lower(), self.unknown)(rest)

    def unknown(self, _):
        self.answer("502 not here")

    def do_ehlo(self, _):
        offers = ["mail of tests", "8BITMIME"]
        if self.server.mode == "starttls" and not self.tls:
            offers.append("STARTTLS")
        if self.server.users and self.tls:
            offers.append("AUTH PLAIN LOGIN")
        self.answer("\r\n".join(f"250{'-' if i + 1 < len(offers) else ' '}{o}" for i, o in enumerate(offers)))

    def do_starttls(self, _):
        if self.server.mode != "starttls":
            self.answer("454 no TLS here")
            return
        self.answer("220 go ahead")
        self.secure()

    def do_auth(self, rest):
        how, _, first = rest.partition(" ")
        ask = lambda q: (self.answer("334 " + q), self.line())[1]  # noqa: E731
        read = lambda s: base64.b64decode(s, validate=True).decode()  # noqa: E731
        if how == "PLAIN":
            _, user, password = read(first or ask("")).split("\0")
        else:
            user, password = read(first or ask("VXNlcm5hbWU6")), read(ask("UGFzc3dvcmQ6"))
        self.who = user if self.server.users.get(user) == password else None
        self.answer("235 welcome" if self.who else "535 5.7.8 wrong name or password")

    def do_mail(self, rest):
        if self.server.users and not self.who:
            self.answer("530 5.7.0 say who you are")
            return
        self.sender, self.to = rest.removeprefix("FROM:<").partition(">")[0], []
        if self.sender.startswith("bad@"):
            self.answer("553 5.1.8 we do not know this sender")
            return
        self.answer("250 ok")

    def do_rcpt(self, rest):
        to = rest.removeprefix("TO:<").partition(">")[0]
        if to.startswith("never"):
            self.answer("550 5.1.1 nobody of that name")
            return
        if to.startswith("grey@"):
            with self.server.lock:
                n = self.server.tries[to] = self.server.tries.get(to, 0) + 1
            if n <= 2:
                self.answer("450-4.2.0 greylisted\r\n450 4.2.0 come again")
                return
        self.to.append(to)
        self.answer("250 ok")

    def do_data(self, _):
        if "slow@example.com" in self.to:
            time.sleep(1.5)  # a slow server
        self.answer("354 go on")
        lines = []
        while True:
            line = self.file.readline(65536)
            if line == b".\r\n":
                break
            if not line.endswith(b"\r\n") or b"\r" in line[:-2]:
                raise ValueError("a line without its end")
            lines.append(line[1:] if line.startswith(b".") else line)
        mail = Mail(self.sender, self.to, b"".join(lines))
        with self.server.lock:
            self.server.mails.append(mail)
            n = self.server.tries[mail["Message-ID"]] = self.server.tries.get(mail["Message-ID"], 0) + 1
        if any(t.startswith("later@") for t in self.to) and n <= 3:
            self.answer("451 4.7.1 come again later")
        elif any(t.startswith("spam@") for t in self.to):
            self.answer("554 5.7.1 we do not want it")
        else:
            self.answer("250 taken")
