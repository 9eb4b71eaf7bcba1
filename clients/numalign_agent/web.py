"""The agent's HTTP page: `/metrics`, and `/healthz` and `/readyz` with a line for each check.

Served by a thread of its own, so that it answers while the loop does not: that is when health
is asked for.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Mapping
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import ClassVar

from numalign.errors import ConfigError

Check = Callable[[], str | None]
"""Why something is not healthy; None if it is. Called from another thread."""

_HEALTH, _READY = "/healthz", "/readyz"


class WebPage:
    """Serves until `close`."""

    def __init__(self, server: ThreadingHTTPServer, thread: threading.Thread) -> None:
        self._server = server
        self._thread = thread

    @property
    def port(self) -> int:
        """The port that it is served on."""
        return self._server.server_port

    @classmethod
    def serve(
        cls,
        host: str,
        port: int,
        metrics: Callable[[], str],
        checks: Mapping[str, Check],
        ready: Mapping[str, Check] | None = None,
    ) -> WebPage:
        """Serve on this address; port 0 is any free one. Without `ready` there is no `/readyz`.

        Raises ConfigError naming the address when it cannot be used.
        """

        class Handler(_Handler):
            page = staticmethod(metrics)
            judged = {_HEALTH: checks} if ready is None else {_HEALTH: checks, _READY: ready}

        try:
            server = ThreadingHTTPServer((host, port), Handler)
        except OSError as error:
            raise ConfigError(f"address {host}:{port}: {error.strerror}") from error
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, args=(0.2,), daemon=True)
        thread.start()
        return cls(server, thread)

    async def close(self) -> None:
        """Stop serving."""
        await asyncio.to_thread(self._server.shutdown)
        self._server.server_close()
        await asyncio.to_thread(self._thread.join)


class _Handler(BaseHTTPRequestHandler):
    page: ClassVar[staticmethod[[], str]]
    judged: ClassVar[Mapping[str, Mapping[str, Check]]]

    def do_GET(self) -> None:
        path, _, query = self.path.partition("?")
        root, _, name = path[1:].partition("/")
        if path == "/metrics":
            self._answer(HTTPStatus.OK, self.page(), "text/plain; version=0.0.4; charset=utf-8")
        elif (checks := self.judged.get(f"/{root}")) is not None:
            self._check(root, checks, name.strip("/"), verbose="verbose" in query)
        else:
            there = " and ".join(("/metrics", *self.judged))
            self._answer(HTTPStatus.NOT_FOUND, f"{path}: there is {there}\n")

    def _check(self, page: str, checks: Mapping[str, Check], name: str, *, verbose: bool) -> None:
        if name and name not in checks:
            self._answer(HTTPStatus.NOT_FOUND, f"no check {name}\n")
            return
        names = (name,) if name else tuple(checks)
        found = {name: checks[name]() for name in names}
        lines = [
            f"[+]{name} ok" if problem is None else f"[-]{name} failed: {problem}"
            for name, problem in found.items()
        ]
        failed = any(problem is not None for problem in found.values())
        if failed or verbose:
            text = "\n".join([*lines, f"{page} check {'failed' if failed else 'passed'}", ""])
        else:
            text = "ok"
        self._answer(HTTPStatus.INTERNAL_SERVER_ERROR if failed else HTTPStatus.OK, text)

    def _answer(
        self, status: HTTPStatus, text: str, kind: str = "text/plain; charset=utf-8"
    ) -> None:
        body = text.encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base's name
        """Nothing: scrapes are not news."""
