"""The server of the cluster that a pod runs in, over a real TLS connection."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from tests.unit.rpc.certificates import Authority, make_authority

from numalign_agent.api.errors import ApiError, Refused, Unreachable
from numalign_agent.api.server import ApiServer
from numalign_agent.api.service_account import HOST, PORT, ServiceAccount


class Server:
    """Answers every request with what it was asked for."""

    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []
        self.port = 0

    async def answer(self, request: web.Request) -> web.StreamResponse:
        body = await request.text()
        self.asked.append(
            {
                "request": f"{request.method} {request.raw_path}",
                "token": request.headers["Authorization"],
                "agent": request.headers["User-Agent"],
                "type": request.headers.get("Content-Type", ""),
                "body": body,
            }
        )
        if request.path.endswith("/missing"):
            return web.json_response({"reason": "NotFound", "message": "it is gone"}, status=404)
        if request.query.get("watch"):
            return web.Response(text='{"type": "ADDED", "object": {}}\n')
        return web.json_response({"kind": "Answer"})


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return make_authority(tmp_path / "authority")


@pytest.fixture
async def server(authority: Authority) -> AsyncIterator[Server]:
    made = Server()
    application = web.Application()
    application.router.add_route("*", "/{path:.*}", made.answer)
    certificate, key = authority.issue("server")
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(certificate, key)
    runner = web.AppRunner(application)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls)
    await site.start()
    made.port = runner.addresses[0][1]
    yield made
    await runner.cleanup()


@pytest.fixture
def account(tmp_path: Path, authority: Authority) -> Path:
    """The files of a service account."""
    directory = tmp_path / "account"
    directory.mkdir()
    (directory / "token").write_text("first\n")
    (directory / "ca.crt").write_bytes(authority.certificate.read_bytes())
    return directory


def environment(port: int) -> dict[str, str]:
    return {HOST: "127.0.0.1", PORT: str(port)}


async def test_requests_are_sent_as_they_are(server: Server, account: Path) -> None:
    api = ApiServer(ServiceAccount.found(environment(server.port), account))
    answer = await api.get("/api/v1/nodes/a%2Fb", {"fieldSelector": "metadata.name=x"})
    patch = [{"op": "remove", "path": "/spec/taints/0"}]
    await api.json_patch("/api/v1/nodes/n", patch)
    async with api.watch("/api/v1/nodes", {}, 10.0) as events:
        types = [event["type"] async for event in events]
    with pytest.raises(Refused, match="404 NotFound: it is gone"):
        await api.get("/missing")
    await api.close()

    assert api.address == f"https://127.0.0.1:{server.port}"
    assert answer == {"kind": "Answer"}
    assert types == ["ADDED"]
    first, second, *_ = server.asked
    assert first == {
        "request": "GET /api/v1/nodes/a%2Fb?fieldSelector=metadata.name%3Dx",
        "token": "Bearer first",
        "agent": "numalign-agent",
        "type": "application/json",
        "body": "",
    }
    assert second["type"] == "application/json-patch+json"
    assert second["body"] == '[{"op": "remove", "path": "/spec/taints/0"}]'


async def test_a_token_that_is_renewed_is_used(server: Server, account: Path) -> None:
    found = ServiceAccount.found(environment(server.port), account)
    (account / "token").write_text("second")

    assert found.token(found.token_read_at + 59) == "first"
    assert found.token(found.token_read_at + 60) == "second"


async def test_another_authority_is_not_believed(
    server: Server, account: Path, tmp_path: Path
) -> None:
    other = make_authority(tmp_path / "other")
    (account / "ca.crt").write_bytes(other.certificate.read_bytes())
    api = ApiServer(ServiceAccount.found(environment(server.port), account))
    with pytest.raises(Unreachable, match="certificate"):
        await api.get("/api/v1/nodes")
    await api.close()

    assert server.asked == []


async def test_a_token_that_cannot_be_read_any_more(server: Server, account: Path) -> None:
    found = ServiceAccount.found(environment(server.port), account)
    api = ApiServer(found)
    found.token_read_at = float("-inf")
    (account / "token").unlink()
    with pytest.raises(Unreachable, match="token"):
        await api.get("/api/v1/nodes")
    await api.close()


@pytest.mark.parametrize(
    ("break_it", "env", "said"),
    [
        pytest.param(lambda _: None, {}, "are not set, so this is no pod", id="no-pod"),
        pytest.param(lambda d: (d / "token").unlink(), environment(1), "token", id="no-token"),
        pytest.param(
            lambda d: (d / "token").write_text(" \n"), environment(1), "is empty", id="empty-token"
        ),
        pytest.param(
            lambda d: (d / "ca.crt").unlink(), environment(1), "ca.crt", id="no-authority"
        ),
        pytest.param(
            lambda d: (d / "ca.crt").write_text("x"), environment(1), "ca.crt", id="odd-ca"
        ),
    ],
)
def test_what_cannot_be_used_is_said(
    account: Path, break_it: Any, env: dict[str, str], said: str
) -> None:
    break_it(account)
    with pytest.raises(ApiError, match="service account: cannot be used") as caught:
        ServiceAccount.found(env, account)

    assert said in str(caught.value)


def test_an_address_of_version_6(account: Path) -> None:
    found = ServiceAccount.found({HOST: "fd00::1", PORT: "443"}, account)

    assert found.address == "https://[fd00::1]:443"
