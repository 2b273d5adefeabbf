"""A proxy between a program and a service, for tests that cut its connections: before or after an answer, or in one direction
only, while both sides believe that the connection stands."""
import contextlib
import os
import socket
import threading


class Proxy:
    """Listens on a TCP port (`port`) or, with `folder`, on PostgreSQL's socket there, and forwards to `target`, a port or a path.

    `up` and `down`: while set, bytes to and from the service are swallowed. on_up(data) is asked before bytes go to the
    service, when it is set: "before" cuts the connection in their place, "after" forwards them and cuts it instead of the answer.
    """

    def __init__(self, target, folder=None):
        self.target, self.on_up = target, None
        self.up = self.down = False
        self.cuts = self.swallowed = 0
        if folder is None:
            self.listener = socket.create_server(("127.0.0.1", 0))
            self.port = self.listener.getsockname()[1]
        else:
            self.listener = socket.socket(socket.AF_UNIX)
            self.listener.bind(os.path.join(folder, ".s.PGSQL.5432"))
            os.chmod(os.path.join(folder, ".s.PGSQL.5432"), 0o777)
            self.listener.listen(64)
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            server = socket.socket(socket.AF_UNIX if isinstance(self.target, str) else socket.AF_INET)
            try:
                server.connect(self.target if isinstance(self.target, str) else ("127.0.0.1", self.target))
            except OSError:
                client.close()
                server.close()
                continue
            cut = threading.Event()  # what comes from the service is no longer handed on
            for args in ((client, server, True, cut), (server, client, False, cut)):
                threading.Thread(target=self.pump, args=args, daemon=True).start()

    def pump(self, source, sink, is_up, cut):
        with contextlib.suppress(OSError):
            while True:
                data = source.recv(65536)
                if not data or (not is_up and cut.is_set()):
                    break
                if self.up if is_up else self.down:
                    self.swallowed += len(data)
                    continue
                verdict = self.on_up(data) if is_up and self.on_up is not None else None
                if verdict is not None:
                    cut.set()
                    self.cuts += 1
                if verdict != "before":
                    sink.sendall(data)
                if verdict == "before":
                    break
        for s in (source, sink):
            with contextlib.suppress(OSError):
                s.shutdown(socket.SHUT_RDWR)

    def close(self):
        self.listener.close()
