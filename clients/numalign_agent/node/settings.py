"""The configuration of `numalign-agent node`: the `node` section of the agent's, as one value."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from numalign.config.serving import read_address
from numalign.config.settings import Address
from numalign.document.problems import Problems
from numalign.document.section import Section, shown

_EVERY_HOST = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - looked for, not listened on


class Fingerprint(StrEnum):
    """Which pods the fingerprint of a node's topology is of."""

    EXCLUSIVE = "with-exclusive-resources"
    ALL = "all"
    NONE = "none"


NO_PODS_OF_A_CLUSTER = "run"
"""The owner of commands of `numalign run`, unless they are given another one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted:
    """Which admitted pods the fingerprint is of. `owners` None: all but that of `numalign run`."""

    method: Fingerprint = Fingerprint.EXCLUSIVE
    owners: frozenset[str] | None = None

    def is_of_the_cluster(self, owner: str) -> bool:
        """Whether the pods of an owner are pods that a scheduler knows."""
        return owner != NO_PODS_OF_A_CLUSTER if self.owners is None else owner in self.owners


@dataclass(frozen=True, slots=True, kw_only=True)
class TopologySettings:
    """How the node's NodeResourceTopology is kept. Times are in seconds.

    `interval` is the least time between two writes, `heartbeat` how often it is looked whether the
    object still says what it should.
    """

    counted: Counted = Counted()
    interval: float = 1.0
    heartbeat: float = 60.0
    delete_at_end: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeSettings:
    """One node. Times are in seconds. `address` is where its page is served, if anywhere.

    `runtime_page` tells whether the runtime's plugin is connected; empty where no plugin is waited
    for. `restore_after`: how long the node is not ready until it gets its taint back; None: never.
    """

    address: Address | None = None
    check_every: float = 5.0
    runtime_page: str = ""
    remove_taint: bool = True
    restore_after: float | None = None
    topology: TopologySettings | None = None


def node_settings(document: object) -> NodeSettings:
    """Read the section of a configuration document. Raises DocumentError with every mistake."""
    problems = Problems()
    agent = Section(document, "", problems).section("numalign").section("agent")
    node = agent.section("node")
    node.refuse_unknown(("address", "checkInterval", "waitForRuntime", "taint", "topology"))
    taint = node.section("taint")
    taint.refuse_unknown(("remove", "restoreAfter"))
    default = NodeSettings()
    remove = taint.boolean("remove", default.remove_taint)
    if "restoreAfter" in taint and not remove:
        taint.wrong("restoreAfter", "goes with remove: true only, or the taint would stay for good")
    settings = NodeSettings(
        address=read_address(node, "address"),
        check_every=node.seconds("checkInterval", default.check_every),
        runtime_page=_runtime_page(node, agent),
        remove_taint=remove,
        restore_after=taint.seconds("restoreAfter", 0.0) or None,
        topology=_topology(node),
    )
    problems.refuse()
    return settings


def _runtime_page(node: Section, agent: Section) -> str:
    """Where the plugin's readiness is told; it is waited for where it is configured."""
    if not node.boolean("waitForRuntime", agent.raw("nri") is not None):
        return ""
    plugin = agent.section("nri")
    address = read_address(plugin, "address")
    if address is None or not address.port:
        plugin.wrong(
            "address",
            "must be given with a port, so that it can be asked whether the plugin is connected; "
            "without a plugin set numalign.agent.node.waitForRuntime to false",
        )
        return ""
    host = _EVERY_HOST.get(address.host, address.host)
    return f"http://{f'[{host}]' if ':' in host else host}:{address.port}/readyz"


def _topology(node: Section) -> TopologySettings | None:
    if node.raw("topology") is None:
        return None
    section = node.section("topology")
    section.refuse_unknown(("fingerprint", "owners", "interval", "heartbeat", "deleteAtEnd"))
    default = TopologySettings()
    return TopologySettings(
        counted=Counted(
            method=section.choice("fingerprint", default.counted.method),
            owners=_owners(section),
        ),
        interval=section.seconds("interval", default.interval),
        heartbeat=section.seconds("heartbeat", default.heartbeat),
        delete_at_end=section.boolean("deleteAtEnd"),
    )


def _owners(section: Section) -> frozenset[str] | None:
    if "owners" not in section:
        return None
    owners = []
    for path, item in section.items("owners"):
        if isinstance(item, str) and item:
            owners.append(item)
        else:
            section.problems.add(path, f"must be the name of an owner, not {shown(item)}")
    return frozenset(owners)
