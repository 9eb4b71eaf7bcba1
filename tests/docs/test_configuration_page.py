"""Every key that is read from a configuration is described, with those inside of others.

Which keys there are is asked of the code that reads them: it is given a document that has one of
everything, and each key that it looks for or would not refuse is noted.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pytest
import yaml
from tests.docs.pages import ROOT
from tests.unit.agent.config.test_reading import DEFAULTS
from tests.unit.config.conftest import defaults

from numalign.config.admission_chain import read_chain_keys
from numalign.config.from_document import settings_from_document
from numalign.document.problems import DocumentError
from numalign.document.section import Section
from numalign_agent.config.reading import read_settings
from numalign_agent.node.settings import node_settings
from numalign_agent.nri.settings import nri_settings

_ONE_OF_EVERYTHING = """
reservedMemory: [{numaNode: 0, limits: {memory: 100Mi}}]
evictionHard: {memory.available: 100Mi}
shutdownGracePeriodByPodPriority: [{priority: 0, shutdownGracePeriodSeconds: 1}]
numalign:
  listen: [{address: "[::1]:7443", tls: {cert: /a, key: /b, clientCA: /c}}]
  kubeletConfigz: {url: "https://h/configz"}
  podResources: {}
  providersRegistry: /run/found
  providers: [{name: a, endpoint: /run/a.sock}]
  admission: {handlers: [{name: b, endpoint: /run/b.sock}]}
  machine:
    numa_nodes:
    - id: 0
      hugepages: [{page_size_kib: 2048, count: 1}]
      cores: [{id: 0, socket_id: 0, threads: [0]}]
  devices: [{resource: example.com/gpu, devices: [{id: g}]}]
  agent:
    api: {}
    kubelet: {socket: /run/kubelet.sock}
    nri: {address: "127.0.0.1:9470"}
    node: {topology: {owners: [me]}}
"""
_ELSEWHERE = "numalign: {machine: {root: /}, devices: {file: devices.yaml}}"

_READERS: tuple[Callable[[Any], object], ...] = (
    lambda document: settings_from_document(document, defaults(lambda _: [])),
    read_chain_keys,
    lambda document: read_settings(document, DEFAULTS),
    nri_settings,
    node_settings,
)

_LOOKS = (
    "__contains__", "raw", "section", "text", "boolean", "integer", "required_integer",
    "required_text", "choice", "seconds", "text_map", "quantity_map", "quantity", "items",
    "sections", "integers",
)  # fmt: skip
"""How a section is asked for one key."""

_FREE = (
    "topologyManagerPolicyOptions", "cpuManagerPolicyOptions", "kubeReserved", "systemReserved",
    "evictionHard", "featureGates", "reservedMemory.limits",
    "numalign.nodeAllocatableReservation",
)  # fmt: skip
"""Maps whose keys are names of things and no settings."""

_FILE = "/"
"""What is in a file of its own has the keys that it would have here."""

_NO_SETTINGS = (_FILE, *(f"{each}." for each in _FREE))

_TABLES = {
    ("docs/configuration.md", "Kubelet keys that decide something"): "",
    ("docs/configuration.md", "Kubelet keys that the admit chain reads"): "",
    ("docs/configuration.md", "Kubelet keys that the node agent reads"): "",
    ("docs/configuration.md", "The `numalign` section"): "numalign",
    ("docs/configuration.md", "`machine`"): "numalign.machine",
    ("docs/configuration.md", "`devices`"): "numalign.devices",
    ("docs/configuration.md", "`providers`"): "numalign.providers",
    ("docs/configuration.md", "`admission.handlers`"): "numalign.admission.handlers",
    ("docs/agent.md", "Settings"): "",
    ("docs/agent-sources.md", "Settings"): "numalign.agent",
    ("docs/how-to/enforce.md", "Settings"): "numalign.agent.nri",
    ("docs/how-to/enforce.md", "Without a container runtime"): "",
    ("docs/how-to/scheduler.md", "Settings"): "numalign.agent.node",
}
"""Where settings are described, and below what key those under a heading are."""


@pytest.fixture
def known(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """The path of every key that is read and has none inside, without the places in lists."""
    found: set[str] = set()

    def note(section: Section, key: str) -> None:
        found.add(re.sub(r"\[\d+\]", "", f"{section.path}.{key}".lstrip(".")))

    def noting(method: Callable[..., Any]) -> Callable[..., Any]:
        def noted(section: Section, key: str, *args: Any, **options: Any) -> Any:
            note(section, key)
            return method(section, key, *args, **options)

        return noted

    def refuse_unknown(section: Section, names: Iterable[str]) -> None:
        for name in names:
            note(section, name)

    for name in _LOOKS:
        monkeypatch.setattr(Section, name, noting(getattr(Section, name)))
    monkeypatch.setattr(Section, "refuse_unknown", refuse_unknown)
    for text in (_ONE_OF_EVERYTHING, _ELSEWHERE):
        for read in _READERS:
            try:
                read(yaml.safe_load(text))
            except DocumentError:
                # No node can have everything at once; each key was looked for all the same.
                continue
    settings = {path for path in found if not path.startswith(_NO_SETTINGS)}
    above = {path.rpartition(".")[0] for path in settings}
    return settings - above


def described() -> set[str]:
    """The path of every key in a table or an example under one of the headings."""
    found: set[str] = set()
    for (page, heading), prefix in _TABLES.items():
        text = (ROOT / page).read_text(encoding="utf-8")
        (part,) = re.findall(
            rf"^#+ {re.escape(heading)}\n(.*?)(?=^#+ |\Z)",
            _unfenced(text),
            re.MULTILINE | re.DOTALL,
        )
        for cell in re.findall(r"^\|(.*?)\|", part, re.MULTILINE):
            last = ""
            for name in re.findall(r"`([^`]+)`", cell):
                last = f"{last.rpartition('.')[0]}{name}" if name.startswith(".") else name
                found.add(_below(prefix, last.replace("<service>", "cpu")))
        found.update(_below(prefix, key) for key in re.findall(r"`(\w+): <", part))
        for example in re.findall(r"```yaml\n(.*?)```", part, re.DOTALL):
            found.update(_keys(yaml.safe_load(example.replace("\n~", "\n#")), prefix))
    return found


def _unfenced(text: str) -> str:
    """Comments of examples are no headings."""
    fences = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
    return fences.sub(lambda fence: fence[0].replace("\n#", "\n~"), text)


def _below(prefix: str, key: str) -> str:
    return f"{prefix}.{key}".lstrip(".")


def _keys(value: Any, prefix: str) -> Iterator[str]:
    if isinstance(value, list):
        for item in value:
            yield from _keys(item, prefix)
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield _below(prefix, key)
            yield from _keys(inner, _below(prefix, key))


def test_every_key_is_described(known: set[str]) -> None:
    every_service = {path for path in known if path.startswith("numalign.metrics.services.")}

    assert not sorted(known - every_service - described())
    assert "numalign.metrics.services.cpu" in described()


def test_the_keys_are_found_where_they_are(known: set[str]) -> None:
    """At the top, in sections, and in lists of sections in sections."""
    assert known >= {
        "topologyManagerPolicy",
        "shutdownGracePeriod",
        "syncFrequency",
        "numalign.sockets.allow.uids",
        "numalign.listen.tls.clientCA",
        "numalign.machine.numa_nodes.cores.threads",
        "numalign.machine.root",
        "numalign.agent.node.topology.fingerprint",
    }
