"""Where pod specs come from: a kubelet over HTTPS, an API server, manifests; and several as one."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from tests.integration.fake_api.server import FakeApiServer, fake_api_server
from tests.unit.rpc.certificates import Authority, make_authority

from numalign_agent.nri.api_calls import PodApi
from numalign_agent.nri.pod_specs.api import ApiSpecs
from numalign_agent.nri.pod_specs.followed import FollowedSpecs
from numalign_agent.nri.pod_specs.kubelet import KubeletSpecs
from numalign_agent.nri.pod_specs.manifests import ManifestSpecs
from numalign_agent.nri.pod_specs.port import FirstOf, PodDocument, SourceFailed, Wanted
from numalign_agent.pod import AgentPod
from numalign_agent.sources.kubelet.pods_list import PodsList
from numalign_agent.sources.port import Deliver


def wanted(uid: str = "u1", name: str = "web", config_hash: str = "") -> Wanted:
    annotations = {"kubernetes.io/config.hash": config_hash} if config_hash else {}
    return Wanted(uid=uid, name=name, namespace="default", annotations=annotations)


def document(uid: str = "u1", name: str = "web", mirror: str = "") -> dict[str, Any]:
    annotations = {"kubernetes.io/config.mirror": mirror} if mirror else {}
    metadata = {"uid": uid, "name": name, "namespace": "default", "annotations": annotations}
    return {"metadata": metadata, "spec": {"containers": []}}


@pytest.mark.parametrize(
    ("looked_for", "found", "is_it"),
    [
        pytest.param(wanted(), document(), True, id="uid"),
        pytest.param(wanted("u1"), document("u2"), False, id="the-next-of-its-name"),
        pytest.param(wanted("h", config_hash="h"), document("m", mirror="h"), True, id="mirror"),
        pytest.param(
            wanted("h", config_hash="h"), document("m", mirror="x"), False, id="older-mirror"
        ),
        pytest.param(wanted("h", config_hash="h"), document("h"), True, id="static-uid"),
        pytest.param(wanted(name="web"), document(name="db"), False, id="another-name"),
        pytest.param(wanted(), document(mirror="h"), True, id="no-static-pod"),
    ],
)
def test_which_object_is_the_pod(looked_for: Wanted, found: PodDocument, is_it: bool) -> None:
    assert looked_for.is_shown_by(found) is is_it


@dataclass
class Kubelet:
    """Serves `/pods` over TLS to whoever has the token."""

    port: int = 0
    pods: list[dict[str, Any]] = field(default_factory=list)
    asked: int = 0
    body: bytes | None = None
    hang: bool = False

    async def answer(self, request: web.Request) -> web.Response:
        self.asked += 1
        if self.hang:
            await asyncio.sleep(60)
        if request.headers.get("Authorization") != "Bearer token":
            return web.Response(status=401)
        body = self.body or json.dumps({"kind": "PodList", "items": self.pods}).encode()
        return web.Response(body=body, content_type="application/json")


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return make_authority(tmp_path_factory.mktemp("kubelet") / "authority")


@asynccontextmanager
async def kubelet(authority: Authority) -> AsyncIterator[Kubelet]:
    found = Kubelet()
    application = web.Application()
    application.router.add_get("/pods", found.answer)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(*authority.issue("kubelet"))
    runner = web.AppRunner(application, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context).start()
    found.port = runner.addresses[0][1]
    try:
        yield found
    finally:
        await runner.cleanup()


def specs_of(found: Kubelet, authority: Authority, token: str = "token") -> KubeletSpecs:
    path = authority.directory / "token"
    path.write_text(f"{token}\n")
    url = f"https://127.0.0.1:{found.port}/pods"
    return KubeletSpecs(PodsList(url, path, authority.certificate))


async def test_a_kubelet_is_asked_once_for_many(authority: Authority) -> None:
    async with kubelet(authority) as found:
        found.pods = [document("u1"), document("u2", "db")]
        specs = specs_of(found, authority)
        both = [*await asyncio.gather(specs.find(wanted()), specs.find(wanted("u2", "db")))]
        nobody = await specs.find(wanted("u3", "cache"))
        asked = found.asked
        found.pods.append(document("u3", "cache"))
        later = await specs.find(wanted("u3", "cache"))
        await specs.close()

    assert both == [document("u1"), document("u2", "db")]
    assert nobody is None
    assert asked == 2, "the list that was just read, and once more for who was not in it"
    assert later == document("u3", "cache")


@pytest.mark.parametrize(
    ("body", "token", "why"),
    [
        pytest.param(b"nonsense", "token", "no list of pods", id="no-json"),
        pytest.param(b'{"kind": "Status"}', "token", "no list of pods", id="no-list"),
        pytest.param(None, "other", "401", id="wrong-token"),
    ],
)
async def test_a_kubelet_that_is_no_help(
    authority: Authority, body: bytes | None, token: str, why: str
) -> None:
    async with kubelet(authority) as found:
        found.body = body
        specs = specs_of(found, authority, token)
        with pytest.raises(SourceFailed, match=why):
            await specs.find(wanted())
        await specs.close()


async def test_a_kubelet_of_another_authority(authority: Authority, tmp_path: Path) -> None:
    other = make_authority(tmp_path / "other")
    async with kubelet(authority) as found:
        specs = KubeletSpecs(
            PodsList(f"https://127.0.0.1:{found.port}/pods", None, other.certificate)
        )
        with pytest.raises(SourceFailed, match="certificate verify failed"):
            await specs.find(wanted())
        await specs.close()

    assert found.asked == 0, "the token was not sent"


async def test_nobody_listens(authority: Authority) -> None:
    specs = specs_of(Kubelet(port=9), authority)
    with pytest.raises(SourceFailed, match=r"127\.0\.0\.1:9"):
        await specs.find(wanted())
    await specs.close()


async def api_of(server: FakeApiServer, tmp_path: Path) -> PodApi:
    return await PodApi.connected(server.kubeconfig(tmp_path / "kubeconfig"), "", "node")


async def test_an_api_server_is_asked_for_one_pod(tmp_path: Path) -> None:
    async with fake_api_server() as server:
        made = server.store.create("pods", "default", document())
        api = await api_of(server, tmp_path)
        specs = ApiSpecs(api)
        uid = made["metadata"]["uid"]
        found = await specs.find(wanted(uid))
        replaced = await specs.find(wanted("old"))
        missing = await specs.find(wanted(name="db"))
        server.faults.fail = [500]
        with pytest.raises(SourceFailed, match="500"):
            await specs.find(wanted(uid))
        await api.close()

    assert found is not None
    assert found["metadata"]["uid"] == uid
    assert (replaced, missing) == (None, None)


MANIFEST = """
apiVersion: v1
kind: Pod
metadata: {name: web, namespace: default}
spec:
  containers:
  - name: app
    image: app:1
    resources: {limits: {cpu: "2", memory: 1Gi}}
"""


async def test_a_manifest_is_found_by_the_name_of_its_pod(tmp_path: Path) -> None:
    (tmp_path / ".hidden.yaml").write_text("nonsense: [")
    (tmp_path / "bad.yaml").write_text("nonsense: [")
    (tmp_path / "web.yaml").write_text(MANIFEST)
    specs = ManifestSpecs(tmp_path, "node-1")
    found = await specs.find(wanted("hash", "web-node-1", "hash"))
    no_static_pod = await specs.find(wanted("u1", "web-node-1"))
    other = await specs.find(wanted("hash", "db-node-1", "hash"))
    one_file = await ManifestSpecs(tmp_path / "web.yaml", "node-1").find(
        wanted("hash", "web-node-1", "hash")
    )

    assert found is not None
    assert found == one_file
    limits = found["spec"]["containers"][0]["resources"]["limits"]
    assert (limits["cpu"], limits["memory"]) == ("2", "1Gi")
    assert (no_static_pod, other) == (None, None)


async def test_manifests_that_are_not_there(tmp_path: Path) -> None:
    found = await ManifestSpecs(tmp_path / "none", "node").find(wanted("h", "web-node", "h"))

    assert found is None


class Followed:
    """A source of pods that delivers when the test says so."""

    name = "kubelet"

    def __init__(self) -> None:
        self.sets: asyncio.Queue[list[AgentPod]] = asyncio.Queue()
        self.wrong: dict[str, str] = {}

    def problems(self) -> Mapping[str, str]:
        return self.wrong

    async def run(self, deliver: Deliver) -> None:
        while True:
            await deliver(await self.sets.get())


async def test_a_followed_source_is_waited_for() -> None:
    source = Followed()
    specs = FollowedSpecs(source)
    looking = asyncio.create_task(specs.find(wanted()))
    source.sets.put_nowait([])
    source.sets.put_nowait([AgentPod(document("u2", "db")), AgentPod(document())])
    found = await looking
    again = await specs.find(wanted("u2", "db"))
    source.wrong = {"/run/kubelet.sock": "refused"}
    with pytest.raises(SourceFailed, match=r"/run/kubelet\.sock: refused"):
        await specs.find(wanted("u3"))
    await specs.close()

    assert found == document()
    assert again == document("u2", "db")


class Source:
    """A source that has a pod, has none, fails, or hangs."""

    def __init__(self, name: str, answer: PodDocument | str | None) -> None:
        self.name = name
        self.answer = answer
        self.asked = 0

    async def find(self, _: Wanted) -> PodDocument | None:
        self.asked += 1
        if self.answer == "hangs":
            await asyncio.sleep(60)
        if isinstance(self.answer, str):
            raise SourceFailed(self.answer)
        return self.answer

    async def close(self) -> None:
        self.asked = -1


async def test_the_first_that_has_the_pod_is_believed(capsys: pytest.CaptureFixture[str]) -> None:
    sources = [Source("down", "refused"), Source("empty", None), Source("has", document())]
    first_of = FirstOf([*sources, Source("never", "not asked")])
    for _ in range(2):
        assert await first_of.find(wanted(), 5) == document()
    sources[0].answer = None
    await first_of.find(wanted(), 5)
    sources[0].answer = "refused again"
    await first_of.find(wanted(), 5)
    await first_of.close()
    said = [line for line in capsys.readouterr().err.splitlines() if "cannot be had" in line]

    assert [source.asked for source in sources] == [-1, -1, -1]
    assert len(said) == 2, "a failure is told once until it is over"


async def test_a_source_that_hangs_takes_no_more_than_its_time() -> None:
    first_of = FirstOf([Source("slow", "hangs"), Source("has", document())])

    assert await first_of.find(wanted(), 0.05) is None


async def test_no_source_at_all() -> None:
    assert await FirstOf([]).find(wanted(), 1) is None
