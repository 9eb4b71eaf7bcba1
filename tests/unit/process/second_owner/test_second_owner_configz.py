"""Asking a kubelet, which is played by a web server."""

from __future__ import annotations

import json
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import pytest
from tests.unit.rpc.certificates import make_authority

from numalign.config.settings import ConfigzSettings
from numalign.process.second_owner.configz import ask_kubelet
from numalign.process.second_owner.rules import KubeletPolicy, Resource

STATIC = json.dumps(
    {"kubeletconfig": {"cpuManagerPolicy": "static", "memoryManagerPolicy": "None"}}
)


class Kubelet(HTTPServer):
    """Answers every request with `answer`."""

    def __init__(self, status: int, answer: str) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.status = status
        self.answer = answer
        self.authorizations: list[str | None] = []


class Handler(BaseHTTPRequestHandler):
    server: Kubelet

    def do_GET(self) -> None:
        self.server.authorizations.append(self.headers.get("Authorization"))
        self.send_response(self.server.status)
        if self.server.status == 302:
            self.send_header("Location", self.server.answer)
        self.end_headers()
        if self.server.status == 200:
            self.wfile.write(self.server.answer.encode())

    def log_message(self, *_: object) -> None:
        """The output belongs to the tests."""


@contextmanager
def kubelet(
    status: int, answer: str, tls: tuple[Path, Path] | None = None
) -> Iterator[tuple[Kubelet, ConfigzSettings]]:
    server = Kubelet(status, answer)
    if tls is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*tls)
        server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        scheme = "http" if tls is None else "https"
        yield server, ConfigzSettings(url=f"{scheme}://localhost:{server.server_port}/configz")
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_its_policies() -> None:
    with kubelet(200, STATIC) as (_, configz):
        assert ask_kubelet(configz) == (
            (
                KubeletPolicy(Resource.CPU, "static", configz.url),
                KubeletPolicy(Resource.MEMORY, "None", configz.url),
            ),
            (),
        )


@pytest.mark.parametrize(
    ("status", "answer", "reason"),
    [
        pytest.param(401, "", "HTTP Error 401", id="not allowed"),
        pytest.param(200, "{", "Expecting property name", id="no JSON"),
        pytest.param(200, "[]", "is no kubelet's configuration", id="something else"),
        pytest.param(200, " " * (2 << 20), "the answer is too long", id="endless"),
        pytest.param(302, "http://127.0.0.1:1/", "HTTP Error 302", id="somewhere else"),
    ],
)
def test_what_is_no_answer(status: int, answer: str, reason: str) -> None:
    with kubelet(status, answer) as (_, configz):
        policies, (report,) = ask_kubelet(configz)

    assert policies == ()
    assert report.startswith(f"{configz.url}: ")
    assert reason in report


def test_nobody_there() -> None:
    with kubelet(200, STATIC) as (_, configz):
        pass
    policies, (report,) = ask_kubelet(configz)

    assert policies == ()
    assert "refused" in report


def test_a_token_goes_to_whom_the_authority_vouches_for(tmp_path: Path) -> None:
    ours, theirs = make_authority(tmp_path / "ours"), make_authority(tmp_path / "theirs")
    token = tmp_path / "token"
    token.write_text("secret\n")
    with kubelet(200, STATIC, ours.issue("kubelet")) as (server, configz):
        trusting = replace(configz, token=token, authority=ours.certificate)
        policies, _ = ask_kubelet(trusting)
        assert len(policies) == 2
        assert server.authorizations == ["Bearer secret"]
        policies, (report,) = ask_kubelet(replace(trusting, authority=theirs.certificate))
        assert policies == ()
        assert "certificate verify failed" in report
        assert server.authorizations == ["Bearer secret"]
