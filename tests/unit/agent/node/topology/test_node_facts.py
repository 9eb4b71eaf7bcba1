"""What the services are asked for: of one revision, and the machine no more often than needed."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from grpc import StatusCode
from grpc.aio import AioRpcError, Metadata
from tests.unit.agent.node.topology.nodes import machine

from numalign.machine.schema import document_of_machine
from numalign.v1 import admission_pb2 as ad
from numalign.v1 import control_pb2 as ct
from numalign.v1 import node_resources_pb2 as nr
from numalign.v1 import topology_pb2 as tm
from numalign_agent.node.topology import node_facts
from numalign_agent.node.topology.node_facts import FactsReader, NotTold
from numalign_client.errors import ServiceUnavailable


class Services:
    """Admission, the Topology Manager and Control in one."""

    def __init__(self) -> None:
        self.revisions = [(1, 1)]
        self.generation = 1
        self.asked_for_machine = 0
        self.document: dict[str, Any] = {
            "numalign": {"machine": document_of_machine(machine())},
        }
        self.fails: Exception | None = None

    async def get_node_resources(self, **_: float) -> nr.NodeResources:
        if isinstance(self.fails, ServiceUnavailable):
            raise self.fails
        return nr.NodeResources(revision=self.revisions[0][0])

    async def list_admissions(self, **_: float) -> ad.ListAdmissionsResponse:
        listed = self.revisions[0][1]
        if len(self.revisions) > 1:
            del self.revisions[0]
        return ad.ListAdmissionsResponse(revision=listed)

    async def watch_node_resources(self) -> AsyncIterator[nr.NodeResources]:
        yield nr.NodeResources()
        raise ServiceUnavailable(StatusCode.UNIMPLEMENTED, "never heard of it")

    async def GetPolicy(self, _request: Any, **_: float) -> tm.GetPolicyResponse:  # noqa: N802
        if isinstance(self.fails, AioRpcError):
            raise self.fails
        return tm.GetPolicyResponse(
            policy="restricted",
            scope="pod",
            options={"prefer-closest-numa-nodes": "true"},
            config_generation=self.generation,
        )

    async def GetConfiguration(  # noqa: N802
        self, _request: Any, **_: float
    ) -> ct.GetConfigurationResponse:
        self.asked_for_machine += 1
        return ct.GetConfigurationResponse(document=json.dumps(self.document))


@pytest.fixture
def services() -> Services:
    return Services()


@pytest.fixture
async def reader(services: Services, monkeypatch: pytest.MonkeyPatch) -> FactsReader:
    monkeypatch.setattr(node_facts, "_BETWEEN_TRIES", 0.0)
    made = FactsReader(Path("/nowhere/a.sock"), Path("/nowhere/t.sock"))
    await made.close()
    stand_in: Any = services
    made._admission = made._topology = made._control = stand_in
    return made


async def test_what_is_told(reader: FactsReader) -> None:
    facts = await reader.read()

    assert facts.machine == machine()
    assert (facts.policy.policy, facts.policy.scope) == ("restricted", "pod")
    assert facts.policy.options == {"prefer-closest-numa-nodes": "true"}


async def test_pods_and_free_amounts_are_of_one_revision(
    reader: FactsReader, services: Services
) -> None:
    services.revisions = [(1, 2), (3, 2), (3, 3)]
    facts = await reader.read()

    assert facts.resources.revision == 3
    assert services.revisions == [(3, 3)]


async def test_a_node_that_never_rests_is_not_told_of(
    reader: FactsReader, services: Services
) -> None:
    services.revisions = [(1, 2)]
    with pytest.raises(NotTold, match="faster than the node can be read"):
        await reader.read()


async def test_the_machine_is_read_for_each_configuration_and_when_it_was_forgotten(
    reader: FactsReader, services: Services
) -> None:
    async def count(change: Callable[[], object]) -> int:
        change()
        await reader.read()
        return services.asked_for_machine

    counts = [
        await count(lambda: None),
        await count(lambda: None),
        await count(lambda: setattr(services, "generation", 2)),
        await count(reader.forget_machine),
    ]

    assert counts == [1, 1, 2, 3]


@pytest.mark.parametrize(
    ("error", "said"),
    [
        pytest.param(
            ServiceUnavailable(StatusCode.UNAVAILABLE, "nobody is there"),
            "Admission: .*nobody is there",
            id="admission",
        ),
        pytest.param(
            AioRpcError(StatusCode.UNAVAILABLE, Metadata(), Metadata(), "gone"),
            "the Topology Manager: UNAVAILABLE: gone",
            id="topology",
        ),
    ],
)
async def test_who_does_not_answer_is_named(
    reader: FactsReader, services: Services, error: Exception, said: str
) -> None:
    services.fails = error
    with pytest.raises(NotTold, match=said):
        await reader.read()


@pytest.mark.parametrize(
    "document",
    [{}, {"numalign": {"machine": {"numa_nodes": "none"}}}],
    ids=["no-machine", "odd-machine"],
)
async def test_a_machine_that_cannot_be_read(
    reader: FactsReader, services: Services, document: dict[str, Any]
) -> None:
    services.document = document
    with pytest.raises(NotTold, match="machine cannot be read"):
        await reader.read()


async def test_a_watch_that_ends_says_why(reader: FactsReader) -> None:
    changes = reader.changes()
    await anext(changes)
    with pytest.raises(NotTold, match="never heard of it"):
        await anext(changes)
