"""The agent's page: health, and metrics, asked for over a real socket."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator
from http.client import HTTPConnection

import pytest

from numalign.errors import ConfigError
from numalign_agent.web import WebPage

problems: dict[str, str | None] = {}


@pytest.fixture
async def page() -> AsyncIterator[WebPage]:
    problems.clear()
    checks = {name: (lambda name=name: problems.get(name)) for name in ("syncloop", "pleg")}
    served = WebPage.serve("127.0.0.1", 0, lambda: "a_metric 1.0\n", checks)
    yield served
    await served.close()


def get(page: WebPage, path: str) -> tuple[int, str]:
    connection = HTTPConnection("127.0.0.1", page.port, timeout=60)
    connection.request("GET", path)
    response = connection.getresponse()
    answer = response.status, response.read().decode()
    connection.close()
    return answer


@pytest.mark.parametrize(
    ("path", "status", "text"),
    [
        ("/metrics", 200, "a_metric 1.0\n"),
        ("/healthz", 200, "ok"),
        ("/healthz/pleg", 200, "ok"),
        ("/healthz?verbose", 200, "[+]syncloop ok\n[+]pleg ok\nhealthz check passed\n"),
        ("/healthz/other", 404, "no check other\n"),
        ("/", 404, "/: there is /metrics and /healthz\n"),
    ],
)
async def test_when_all_is_well(page: WebPage, path: str, status: int, text: str) -> None:
    assert get(page, path) == (status, text)


async def test_a_check_that_fails_is_named(page: WebPage) -> None:
    problems["pleg"] = "no listing"

    assert get(page, "/healthz") == (
        500,
        "[+]syncloop ok\n[-]pleg failed: no listing\nhealthz check failed\n",
    )
    assert get(page, "/healthz/syncloop") == (200, "ok")


async def test_readiness_is_asked_for_apart_from_health() -> None:
    problems.clear()
    served = WebPage.serve(
        "127.0.0.1", 0, str, {"loop": lambda: None}, {"runtime": lambda: problems.get("runtime")}
    )
    ready = get(served, "/readyz")
    problems["runtime"] = "not connected"
    answers = get(served, "/readyz"), get(served, "/healthz"), get(served, "/readyzz")
    await served.close()

    assert ready == (200, "ok")
    assert answers == (
        (500, "[-]runtime failed: not connected\nreadyz check failed\n"),
        (200, "ok"),
        (404, "/readyzz: there is /metrics and /healthz and /readyz\n"),
    )


async def test_an_address_that_is_taken() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(ConfigError, match=f"address 127.0.0.1:{port}: Address already in use"):
            WebPage.serve("127.0.0.1", port, str, {})
