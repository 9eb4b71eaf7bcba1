"""The object on an API server: created, changed, repaired, deleted, and what stands in the way."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.integration.fake_api.server import CUSTOM, FakeApiServer

from numalign.telemetry.metrics import Metrics
from numalign_agent.api.errors import ApiError, Refused
from numalign_agent.api.server import ApiServer
from numalign_agent.node.failures import topology_trouble
from numalign_agent.node.metrics import NODE
from numalign_agent.node.topology.published import NoTopologyKind, PublishedTopology

NAME = "node-1"


def made(available: str) -> dict[str, Any]:
    """What an object says."""
    amounts = {"name": "cpu", "capacity": "4", "allocatable": "4", "available": available}
    zone = {"name": "node-0", "type": "Node", "resources": [amounts]}
    return {"topologyPolicies": ["None"], "zones": [zone], "attributes": []}


class Cluster:
    """A cluster with a Node that knows the kind of object."""

    def __init__(self, fake: FakeApiServer, api: ApiServer) -> None:
        self.fake = fake
        self.metrics = Metrics(NODE, enabled=True)
        self.published = PublishedTopology(api, NAME, self.metrics)
        self.join()
        fake.has_custom = True

    def join(self) -> None:
        """The Node registers."""
        self.fake.store.create("nodes", "", {"metadata": {"name": NAME}})

    def found(self) -> dict[str, Any]:
        """The object as it is."""
        return self.fake.store.get(CUSTOM, "", NAME)

    def available(self) -> str:
        """What it says is available."""
        return str(self.found()["zones"][0]["resources"][0]["available"])

    def written_by_others(self, **changes: Any) -> None:
        """Somebody else writes the object."""
        self.fake.store.update(CUSTOM, "", NAME, {**self.found(), **changes})

    def writes(self) -> dict[str, float]:
        """How often it was written, by how."""
        prefix = 'numalign_agent_node_topology_writes_total{change="'
        found = {}
        for line in self.metrics.text().splitlines():
            if line.startswith(prefix):
                change, _, count = line.removeprefix(prefix).partition('"} ')
                if float(count):
                    found[change] = float(count)
        return found

    def asked(self, during: int) -> list[str]:
        """What was asked for after so many calls, without the versions of paths."""
        requests = self.fake.requests[during:]
        return [f"{r.split()[0]} {r.rpartition('/')[2]}" for r in requests]


@pytest.fixture
def cluster(fake: FakeApiServer, api: ApiServer) -> Cluster:
    return Cluster(fake, api)


async def test_it_is_made_belongs_to_the_node_and_is_changed_in_one_call(cluster: Cluster) -> None:
    await cluster.published.write(made("4"), look=True)
    owners = cluster.found()["metadata"]["ownerReferences"]
    node = cluster.fake.store.get("nodes", "", NAME)["metadata"]
    before = len(cluster.fake.requests)
    await cluster.published.write(made("3"), look=False)

    assert owners == [{"apiVersion": "v1", "kind": "Node", "name": NAME, "uid": node["uid"]}]
    assert cluster.asked(before) == [f"PUT {NAME}"]
    assert cluster.available() == "3"
    assert cluster.published.is_written(made("3"))
    assert not cluster.published.is_written(made("4"))
    assert cluster.writes() == {"created": 1, "updated": 1}


async def test_one_that_says_all_is_looked_at_and_left(cluster: Cluster) -> None:
    await cluster.published.write(made("4"), look=True)
    version = cluster.found()["metadata"]["resourceVersion"]
    await cluster.published.write(made("4"), look=True)

    assert cluster.found()["metadata"]["resourceVersion"] == version
    assert cluster.writes() == {"created": 1}


async def test_one_that_was_there_before_is_taken_over(cluster: Cluster) -> None:
    old = {"metadata": {"name": NAME, "labels": {"kept": "yes"}}, **made("0"), "extra": 1}
    cluster.fake.store.create(CUSTOM, "", old)
    await cluster.published.write(made("4"), look=True)

    assert cluster.available() == "4"
    assert cluster.found()["metadata"]["labels"] == {"kept": "yes"}
    assert cluster.writes() == {"updated": 1}


async def test_what_somebody_else_wrote_is_repaired_and_said(
    cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    await cluster.published.write(made("4"), look=True)
    metadata = {**cluster.found()["metadata"], "managedFields": [{"manager": "nfd"}]}
    cluster.written_by_others(**made("9"), metadata=metadata)
    await cluster.published.write(made("4"), look=True)
    (said,) = [line for line in capsys.readouterr().err.splitlines() if "somebody else" in line]

    assert cluster.available() == "4"
    assert cluster.writes() == {"created": 1, "repaired": 1}
    assert "nfd" in said
    assert NAME in said


@pytest.mark.parametrize(
    "meanwhile",
    [
        pytest.param(lambda c: c.written_by_others(**made("9")), id="written"),
        pytest.param(lambda c: c.written_by_others(other=1), id="something-else-of-it-written"),
        pytest.param(lambda c: c.fake.store.delete(CUSTOM, "", NAME, {}), id="deleted"),
    ],
)
async def test_a_change_that_was_overtaken_is_made_again(
    cluster: Cluster, meanwhile: Callable[[Cluster], None]
) -> None:
    await cluster.published.write(made("4"), look=True)
    cluster.fake.faults.overtaken.append(lambda: meanwhile(cluster))
    await cluster.published.write(made("3"), look=False)

    assert cluster.available() == "3"


async def test_one_that_was_deleted_comes_again(cluster: Cluster) -> None:
    await cluster.published.write(made("4"), look=True)
    cluster.fake.store.delete(CUSTOM, "", NAME, {})
    await cluster.published.write(made("4"), look=True)

    assert cluster.available() == "4"
    assert cluster.writes() == {"created": 2}


async def test_a_node_that_joins_anew_owns_it_again(cluster: Cluster) -> None:
    await cluster.published.write(made("4"), look=True)
    cluster.fake.store.delete("nodes", "", NAME, {})
    cluster.join()
    await cluster.published.write(made("4"), look=True)
    (owner,) = cluster.found()["metadata"]["ownerReferences"]

    assert owner["uid"] == cluster.fake.store.get("nodes", "", NAME)["metadata"]["uid"]


async def test_a_cluster_without_the_kind_is_told_from_one_without_the_object(
    cluster: Cluster,
) -> None:
    cluster.fake.has_custom = False
    with pytest.raises(NoTopologyKind) as caught:
        await cluster.published.write(made("4"), look=True)
    cluster.fake.has_custom = True
    await cluster.published.write(made("4"), look=True)

    assert "apply deploy/crds/noderesourcetopologies.yaml" in str(caught.value)
    assert cluster.available() == "4"


@pytest.mark.parametrize("call", [f"GET {CUSTOM}", f"POST {CUSTOM}", f"PUT {CUSTOM}"])
async def test_a_right_that_is_missing_is_named(cluster: Cluster, call: str) -> None:
    if call.startswith("PUT"):
        await cluster.published.write(made("4"), look=True)
    cluster.fake.faults.forbidden.add(call)
    with pytest.raises(Refused) as caught:
        await cluster.published.write(made("3"), look=True)

    assert "the ClusterRole numalign-topology" in topology_trouble(caught.value, NAME)


async def test_without_its_node_there_is_no_object(cluster: Cluster) -> None:
    cluster.fake.store.delete("nodes", "", NAME, {})
    with pytest.raises(ApiError) as caught:
        await cluster.published.write(made("4"), look=True)

    assert topology_trouble(caught.value, NAME).startswith("there is no Node node-1")
    assert cluster.writes() == {}


async def test_it_is_deleted_if_it_is_still_the_same_one(cluster: Cluster) -> None:
    await cluster.published.write(made("4"), look=True)
    await cluster.published.delete()
    gone = dict(cluster.fake.store.objects[CUSTOM])
    await cluster.published.write(made("4"), look=True)
    cluster.fake.store.delete(CUSTOM, "", NAME, {})
    cluster.fake.store.create(CUSTOM, "", {"metadata": {"name": NAME}, **made("1")})
    await cluster.published.delete()

    assert gone == {}
    assert cluster.available() == "1"
    assert cluster.writes() == {"created": 2, "deleted": 1}
