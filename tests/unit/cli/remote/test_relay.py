"""The line that a relay begins with, and the relay itself between a pipe and a socket."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from numalign.cli.remote.greeting import Greeting, greeting_line, read_greeting
from numalign.config.settings import Service
from numalign.errors import Unavailable

_RELAY = (sys.executable, "-m", "numalign.cli", "relay")


@pytest.mark.parametrize(
    "greeting",
    [
        Greeting(sockets={Service.CPU: "/run/cpu.sock"}),
        Greeting(sockets={Service.CPU: "/a b"}, error="Connection refused"),
        Greeting(),
    ],
    ids=["up", "down", "nothing"],
)
def test_a_greeting_is_read_as_it_was_written(greeting: Greeting) -> None:
    line = greeting_line(greeting)

    assert line.count(b"\n") == 1
    assert read_greeting(line) == greeting


def test_a_service_of_a_later_version_is_left_out() -> None:
    line = b'{"relay": 1, "sockets": {"cpu": "/c", "quantum": "/q"}, "error": ""}\n'

    assert read_greeting(line).sockets == {Service.CPU: "/c"}


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (b"hello\n", 'the pod answered "hello" in place of numalign relay'),
        (b"\xff\n", "in place of numalign relay"),
        (b"[]\n", 'the pod answered "[]" in place of numalign relay'),
        (b'{"relay": 1}\n', "in place of numalign relay"),
        (b'{"relay": 2}\n', "speaks version 2 of relay, and this one 1"),
    ],
    ids=["text", "no text", "no mapping", "half", "another version"],
)
def test_no_greeting(line: bytes, said: str) -> None:
    with pytest.raises(Unavailable) as refused:
        read_greeting(line)

    assert said in str(refused.value)


def _relay(directory: Path, service: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [*_RELAY, service, "--socket", str(directory / "admission.sock")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONUNBUFFERED": ""},
    )


def test_bytes_go_both_ways(tmp_path: Path) -> None:
    data = os.urandom(300_000)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "cpu.sock"))
        server.listen()

        def echo() -> None:
            link, _ = server.accept()
            with link:
                while piece := link.recv(1 << 16):
                    link.sendall(piece)

        thread = threading.Thread(target=echo)
        thread.start()
        out, _ = _relay(tmp_path, "cpu").communicate(data, timeout=60)
        thread.join()

    line, _, rest = out.partition(b"\n")
    assert json.loads(line)["sockets"]["cpu"] == str(tmp_path / "cpu.sock")
    assert rest == data


@pytest.mark.parametrize(
    ("service", "error"),
    [
        ("cpu", "No such file or directory"),
        ("dra", "the configuration has no such service"),
    ],
)
def test_a_service_that_is_not_reached(tmp_path: Path, service: str, error: str) -> None:
    relay = _relay(tmp_path, service)
    out, _ = relay.communicate(b"", timeout=60)

    assert relay.returncode == 1
    assert read_greeting(out).error == error
