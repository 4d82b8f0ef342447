"""An S3 server on loopback for tests: moto, which supports conditional requests, with faults and a request counter."""

from __future__ import annotations

import logging
import socket
import struct
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs
from uuid import uuid4

from lakelsm.arguments import option_texts
from lakelsm.storage import FileIO, open_storage

#: The dictionary of a WSGI request.
Environment = dict[str, Any]
StartResponse = Callable[..., Any]


@dataclass
class Fault:
    """A fault for the next ``times`` requests that ``hits`` selects by method and path.

    'refuse': the request is not processed; the answer is ``status`` and ``body``. 'drop': it is processed, and then the
    connection closes without an answer. 'drop before': the connection closes first. 'truncate': the answer has half of
    its body. 'cut': not processed; the answer is ``status`` and half of a body. 'reset': the connection is reset first.
    'delay': the answer is ``seconds`` late. 'land then fail': processed, but the answer is ``status``.
    'ignore condition': processed as if it had no `If-None-Match`.
    """

    kind: str
    hits: Callable[[str, str], bool]
    times: int = 1
    status: str = "503 Slow Down"
    body: bytes = b"<Error><Code>SlowDown</Code></Error>"
    seconds: float = 0.0
    met: int = 0


@dataclass
class ObjectServer:
    """``requests`` lists (method, path) since the last `counted`, in order; a listing has the method LIST."""

    port: int = 0
    requests: list[tuple[str, str]] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)
    deciding: threading.Lock = field(default_factory=threading.Lock)

    @property
    def options(self) -> dict[str, object]:
        """The `storage_options` that reach this server."""
        return {
            "s3.endpoint": f"http://127.0.0.1:{self.port}",
            "s3.access-key": "test-access",
            "s3.secret-key": "test-secret",
            "s3.path.style.access": True,
        }

    def start(self) -> None:
        from moto.server import DomainDispatcherApplication, create_backend_app
        from werkzeug.serving import make_server

        logging.getLogger("werkzeug").setLevel(logging.ERROR)
        self._moto = DomainDispatcherApplication(create_backend_app)
        server = make_server("127.0.0.1", 0, self._answer, threaded=True)
        self.port = server.server_port
        threading.Thread(target=server.serve_forever, daemon=True).start()

    def new_bucket(self) -> str:
        """Create a bucket and return its URI."""
        from moto.s3.models import s3_backends

        name = f"bucket-{uuid4()}"
        s3_backends["123456789012"]["aws"].create_bucket(name, "us-east-1")
        return f"s3://{name}"

    @contextmanager
    def fault(self, kind: str, hits: Callable[[str, str], bool], **more: Any) -> Iterator[Fault]:
        """Cause the fault within the block."""
        fault = Fault(kind, hits, **more)
        with self.lock:
            self.faults.append(fault)
        try:
            yield fault
        finally:
            with self.lock:
                self.faults.remove(fault)

    @contextmanager
    def counted(self) -> Iterator[Counter[str]]:
        """Yield the number of requests by method; it is filled at the end."""
        counts: Counter[str] = Counter()
        with self.lock:
            self.requests.clear()
        yield counts
        with self.lock:
            counts.update(method for method, _ in self.requests)

    def _answer(self, environ: Environment, start_response: StartResponse) -> Iterable[bytes]:
        method, path = environ["REQUEST_METHOD"], environ["PATH_INFO"]
        query = parse_qs(environ.get("QUERY_STRING", ""), keep_blank_values=True)
        if method == "GET" and "list-type" in query:
            method = "LIST"
        with self.lock:
            self.requests.append((method, path))
            fault = next((each for each in self.faults if each.met < each.times and each.hits(method, path)), None)
            if fault is not None:
                fault.met += 1
        body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
        if fault is None:
            return self._carried_out(environ, body, start_response)
        if fault.kind == "refuse":
            return _answered(fault, start_response)
        if fault.kind == "cut":
            start_response(fault.status, [("Content-Length", str(2 * len(fault.body) + 100))])
            return _truncated(environ, 2 * fault.body)
        if fault.kind == "reset":
            environ["werkzeug.socket"].setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            return _dropped(environ)
        if fault.kind == "drop before":
            return _dropped(environ)
        if fault.kind == "ignore condition":
            environ.pop("HTTP_IF_NONE_MATCH", None)
            return self._carried_out(environ, body, start_response)
        held: list[Any] = []
        content = b"".join(self._carried_out(environ, body, lambda *head: held.append(head)))
        if fault.kind == "drop":
            return _dropped(environ)
        if fault.kind == "land then fail":
            return _answered(fault, start_response)
        time.sleep(fault.seconds)
        start_response(*held[0])
        if fault.kind == "truncate":
            return _truncated(environ, content)
        return [content]

    def _carried_out(self, environ: Environment, body: bytes, start_response: StartResponse) -> Iterable[bytes]:
        from io import BytesIO

        environ["wsgi.input"] = BytesIO(body)
        conditional = "HTTP_IF_NONE_MATCH" in environ or "HTTP_IF_MATCH" in environ
        with self.deciding if conditional else nullcontext():  # moto checks the condition before it writes.
            answer: Iterable[bytes] = self._moto(environ, start_response)
        return answer


def opened(server: ObjectServer, **more: str) -> tuple[FileIO, str]:
    """Return a new bucket of a server as storage, and its URI; ``more`` are further `storage_options`."""
    return open_storage(server.new_bucket(), option_texts("options", {**server.options, **more}))


def _answered(fault: Fault, start_response: StartResponse) -> Iterable[bytes]:
    start_response(fault.status, [("Content-Length", str(len(fault.body)))])
    return [fault.body]


def _dropped(environ: Environment) -> Iterable[bytes]:
    """Close the connection: the client gets no answer."""
    _end(environ)
    raise ConnectionAbortedError("the test drops this connection")


def _truncated(environ: Environment, content: bytes) -> Iterator[bytes]:
    yield content[: len(content) // 2]
    _end(environ)
    raise ConnectionAbortedError("the test drops this connection")


def _end(environ: Environment) -> None:
    connection: socket.socket = environ["werkzeug.socket"]
    connection.shutdown(socket.SHUT_RDWR)
