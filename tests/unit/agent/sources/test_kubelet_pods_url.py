"""A kubelet's /pods over HTTPS."""

from __future__ import annotations

import json
import ssl
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from tests.unit.agent.sources.collecting import running
from tests.unit.rpc.certificates import Authority, make_authority

from numalign_agent.sources.kubelet.pods_url import KubeletPodsUrl

POD = {"metadata": {"name": "web", "uid": "u"}, "spec": {"volumes": [{"name": "v"}]}}


class Kubelet:
    """Answers `body` to whoever has the token."""

    def __init__(self) -> None:
        self.body: Any = {"items": [POD]}
        self.token = "one"
        self.url = ""

    async def pods(self, request: web.Request) -> web.Response:
        if request.headers.get("Authorization") != f"Bearer {self.token}":
            return web.Response(status=401)
        return web.Response(text=json.dumps(self.body))


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return make_authority(tmp_path_factory.mktemp("tls") / "ca")


@pytest.fixture
async def kubelet(authority: Authority) -> AsyncIterator[Kubelet]:
    made = Kubelet()
    application = web.Application()
    application.router.add_get("/pods", made.pods)
    runner = web.AppRunner(application)
    await runner.setup()
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(*authority.issue("kubelet"))
    await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context).start()
    made.url = f"https://localhost:{runner.addresses[0][1]}/pods"
    yield made
    await runner.cleanup()


async def test_pods_come_whole_and_the_token_is_read_anew(
    kubelet: Kubelet, authority: Authority, tmp_path: Path
) -> None:
    token = tmp_path / "token"
    token.write_text("one\n", encoding="utf-8")
    source = KubeletPodsUrl(kubelet.url, token, authority.certificate, every=0.02)
    async with running(source) as delivered:
        await delivered.until(lambda: delivered.names == ["web"])
        assert delivered.sets[-1][0].document == POD

        kubelet.token = "two"
        await delivered.until(lambda: source.problems() == {kubelet.url: "401 Unauthorized"})
        token.write_text("two", encoding="utf-8")
        await delivered.until(lambda: source.problems() == {})

        token.unlink()
        await delivered.until(lambda: "No such file" in source.problems().get(kubelet.url, ""))


async def test_a_kubelet_with_a_certificate_of_somebody_else(kubelet: Kubelet) -> None:
    source = KubeletPodsUrl(kubelet.url, every=0.02)
    async with running(source) as delivered:
        await delivered.until(lambda: "certificate" in source.problems().get(kubelet.url, ""))
        assert delivered.sets == []


@pytest.mark.parametrize(
    ("body", "why"),
    [
        pytest.param([], "the answer is no list of pods", id="no-list"),
        pytest.param({"items": [3]}, "the answer is no list of pods", id="no-pod"),
        pytest.param({"items": [{}]}, "the list has a pod without a UID", id="no-uid"),
    ],
)
async def test_nonsense(
    kubelet: Kubelet, authority: Authority, tmp_path: Path, body: Any, why: str
) -> None:
    token = tmp_path / "token"
    token.write_text("one", encoding="utf-8")
    kubelet.body = body
    source = KubeletPodsUrl(kubelet.url, token, authority.certificate, every=0.02)
    async with running(source) as delivered:
        await delivered.until(lambda: source.problems() == {kubelet.url: why})
        assert delivered.sets == []

        kubelet.body = {"items": None}
        await delivered.until(lambda: delivered.names == [])
