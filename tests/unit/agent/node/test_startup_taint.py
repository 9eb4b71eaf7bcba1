"""The start-up taint over a real connection: taken off, put back, and what is said on the way."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
from tests.integration.fake_api.server import FakeApiServer

from numalign.telemetry.metrics import Metrics
from numalign_agent.api.server import ApiServer
from numalign_agent.node.metrics import NODE
from numalign_agent.node.startup_taint import LOOK_EVERY, StartUpTaint
from numalign_agent.node.taint import KEY, TAINT

NAME = "node-1"
OTHER = {"key": "example.com/other", "effect": "NoSchedule"}


class Cluster:
    """One Node, and who looks after its taint."""

    def __init__(self, server: FakeApiServer, client: ApiServer, restore: float | None) -> None:
        self.server = server
        self.metrics = Metrics(NODE, enabled=True)
        self.taint = StartUpTaint(client, NAME, restore, self.metrics)

    def join(self, *taints: dict[str, str]) -> None:
        """The Node registers."""
        spec = {"taints": list(taints)} if taints else {}
        self.server.store.create("nodes", "", {"metadata": {"name": NAME}, "spec": spec})

    def taints(self) -> list[dict[str, str]]:
        """What the Node has now."""
        found: list[dict[str, str]] = self.node()["spec"].get("taints", [])
        return found

    def node(self) -> dict[str, Any]:
        """The Node."""
        return self.server.store.get("nodes", "", NAME)

    def asked(self) -> int:
        """How many calls there were."""
        return len(self.server.requests)

    def value(self, series: str) -> float:
        """A value of the metrics page."""
        lines = [line for line in self.metrics.text().splitlines() if line.startswith(series)]
        return float(lines[0].rpartition(" ")[2])


@pytest.fixture
def cluster(fake: FakeApiServer, api: ApiServer) -> Cluster:
    return Cluster(fake, api, None)


async def test_it_is_taken_off_once_all_is_ready(cluster: Cluster) -> None:
    cluster.join(OTHER, TAINT)
    before = cluster.node()
    await cluster.taint.look(ready=False, now=0)
    asked, waits = cluster.asked(), cluster.taint.problem()
    await cluster.taint.look(ready=True, now=5)

    assert (asked, waits) == (0, "the Node has not been looked at yet")
    assert cluster.taint.problem() is None
    assert cluster.taints() == [OTHER]
    assert {**cluster.node(), "metadata": 0, "spec": 0} == {**before, "metadata": 0, "spec": 0}
    assert cluster.value('numalign_agent_node_taint_changes_total{change="removed"}') == 1
    assert cluster.value("numalign_agent_node_tainted") == 0


async def test_a_node_that_joins_anew_is_seen_to_after_a_while(cluster: Cluster) -> None:
    cluster.join()
    await cluster.taint.look(ready=True, now=0)
    cluster.server.store.delete("nodes", "", NAME, {})
    cluster.join(TAINT)
    await cluster.taint.look(ready=True, now=LOOK_EVERY - 1)
    soon = cluster.taints()
    await cluster.taint.look(ready=True, now=LOOK_EVERY)

    assert soon == [TAINT]
    assert cluster.taints() == []


async def test_what_others_change_meanwhile_stays(cluster: Cluster) -> None:
    cluster.join(TAINT)
    store = cluster.server.store
    first = {"spec": {"taints": [OTHER, TAINT]}}
    cluster.server.faults.overtaken.append(lambda: store.patch("nodes", "", NAME, first))
    await cluster.taint.look(ready=True, now=0)

    assert cluster.taints() == [OTHER]


async def test_whoever_is_overtaken_again_and_again_waits(cluster: Cluster) -> None:
    cluster.join(TAINT)
    store, faults = cluster.server.store, cluster.server.faults
    for count in range(1, 4):
        others = [{"key": f"example.com/{n}", "effect": "NoSchedule"} for n in range(count)]
        patch = {"spec": {"taints": [*others, TAINT]}}
        faults.overtaken.append(partial(store.patch, "nodes", "", NAME, patch))
    await cluster.taint.look(ready=True, now=0)
    problem = cluster.taint.problem() or ""
    await cluster.taint.look(ready=True, now=1)

    assert problem.startswith("422 Invalid: /spec/taints/2")
    assert [taint["key"] for taint in cluster.taints()] == [f"example.com/{n}" for n in range(3)]


@pytest.mark.parametrize(
    ("forbidden", "said"),
    [
        pytest.param("GET nodes", "needs the rights get and patch on nodes", id="get"),
        pytest.param("PATCH nodes", "bind it to the ClusterRole numalign-node", id="patch"),
    ],
)
async def test_a_right_that_is_missing_is_named(
    cluster: Cluster, forbidden: str, said: str
) -> None:
    cluster.join(TAINT)
    cluster.server.faults.forbidden.add(forbidden)
    await cluster.taint.look(ready=True, now=0)
    problem = cluster.taint.problem() or ""
    cluster.server.faults.forbidden.clear()
    await cluster.taint.look(ready=True, now=10)

    assert said in problem
    assert problem.startswith("403 Forbidden: nodes is forbidden")
    assert cluster.taint.problem() is None
    assert cluster.taints() == []
    assert cluster.value('numalign_agent_node_api_failures_total{purpose="taint"}') == 1


async def test_a_node_that_is_not_there_is_named(cluster: Cluster) -> None:
    await cluster.taint.look(ready=True, now=0)

    assert cluster.taint.problem() == (
        "there is no Node node-1: --node-name (numalign.agent.nodeName) must be the name that the "
        "node has in the cluster"
    )


async def test_a_server_that_is_away_is_asked_again_and_less_and_less_often(
    cluster: Cluster,
) -> None:
    cluster.join(TAINT)
    await cluster.server.stop()
    tried = []
    for now in range(20):
        before = cluster.value('numalign_agent_node_api_failures_total{purpose="taint"}')
        await cluster.taint.look(ready=True, now=now)
        if cluster.value('numalign_agent_node_api_failures_total{purpose="taint"}') > before:
            tried.append(now)
    problem = cluster.taint.problem() or ""
    await cluster.server.start()
    await cluster.taint.look(ready=True, now=100)

    assert tried == [0, 1, 3, 7, 15]
    assert "nodes/node-1" in problem
    assert cluster.taints() == []


async def test_it_is_not_put_back_unless_told_to(cluster: Cluster) -> None:
    cluster.join()
    await cluster.taint.look(ready=True, now=0)
    for now in range(1, 100_000, 10_000):
        await cluster.taint.look(ready=False, now=now)

    assert cluster.taints() == []


async def test_it_is_put_back_when_it_takes_long_and_taken_off_again(
    fake: FakeApiServer, api: ApiServer
) -> None:
    cluster = Cluster(fake, api, 300.0)
    cluster.join(OTHER)
    seen = []
    for now, ready in [(0, True), (10, False), (309, False), (310, False), (320, True)]:
        await cluster.taint.look(ready=ready, now=now)
        seen.append([taint["key"] == KEY for taint in cluster.taints()])

    assert seen == [[False], [False], [False], [False, True], [False]]
    assert cluster.value('numalign_agent_node_taint_changes_total{change="restored"}') == 1


async def test_a_short_pause_is_not_long(fake: FakeApiServer, api: ApiServer) -> None:
    cluster = Cluster(fake, api, 300.0)
    cluster.join()
    for now in range(0, 3000, 100):
        await cluster.taint.look(ready=now % 300 == 0, now=now)

    assert cluster.taints() == []
