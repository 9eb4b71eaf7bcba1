"""From a configuration document to the agent's settings.

The document is the one that the services read: a KubeletConfiguration whose `numalign` section
has an `agent` section. Reading never stops at the first mistake.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from numalign.config.admission_chain import read_chain_keys, read_shutdown
from numalign.config.defaults import Directories
from numalign.config.dra import read_dra
from numalign.config.feature_gates import read_feature_gates
from numalign.config.serving import read_address, read_endpoints, socket_path
from numalign.config.settings import LogFormat, LogLevel, Service, ShutdownSource
from numalign.document.problems import Problems
from numalign.document.section import Section, shown
from numalign_agent.cgroups.settings import read_cgroups
from numalign_agent.config.enforce import Enforce
from numalign_agent.config.settings import (
    AgentSettings,
    ApiSettings,
    FileSourceSettings,
    HttpSettings,
    HttpSourceSettings,
    KubeletSourceSettings,
    RunnerKind,
    ShutdownSettings,
)

_NO_PLACE = "must be given: neither HOME nor an XDG directory is set"

AGENT = "agent"
DEFAULT_OWNER = "agent"

_KEYS = (
    "nodeName", "owner", "runner", "stateDirectory", "podLogsDirectory", "address", "api",
    "enforce", "kubelet", "reconcileFrequency", "checkInterval", "journalEntries", "nri", "node",
    "cgroups",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentDefaults:
    """What a document is completed with; relative paths are taken from `base_directory`."""

    hostname: str
    directories: Directories
    base_directory: Path


def read_settings(document: object, defaults: AgentDefaults) -> AgentSettings:
    """The settings that `document` (decoded) and `defaults` give.

    Raises DocumentError naming every mistake with its path and value.
    """
    problems = Problems()
    kubelet = Section(document, "", problems)
    numalign = kubelet.section("numalign")
    agent = numalign.section(AGENT)
    agent.refuse_unknown(_KEYS)
    base = defaults.base_directory
    log = numalign.section("log")
    sockets = _sockets(numalign, defaults.directories.runtime)
    dra = read_dra(numalign.section("dra"))
    settings = AgentSettings(
        node_name=agent.text("nodeName") or defaults.hostname.lower(),
        owner=agent.text("owner", DEFAULT_OWNER) or DEFAULT_OWNER,
        admission_socket=sockets[Service.ADMISSION],
        state_directory=_state_directory(numalign, agent, defaults.directories.state),
        log_level=log.choice("level", LogLevel.INFO).value,
        log_format=log.choice("format", LogFormat.JSON).value,
        file=_file(kubelet, base),
        url=_url(kubelet),
        api=_api(kubelet, agent, base, sockets[Service.DRA] if dra.enabled else None),
        kubelet=_kubelet(agent, base),
        runner=agent.choice("runner", RunnerKind.PROCESS),
        enforce=agent.choice("enforce", Enforce.AUTO),
        pod_logs_directory=_optional_directory(agent, "podLogsDirectory"),
        http=_http(agent),
        shutdown=_shutdown(document, numalign),
        sync_every=kubelet.seconds("syncFrequency", 60.0),
        reconcile_every=agent.seconds("reconcileFrequency", 10.0),
        check_every=agent.seconds("checkInterval", 10.0),
        journal_entries=agent.integer("journalEntries", 10_000, 100),
        gates=read_feature_gates(kubelet.section("featureGates")).gates,
        claim_hints=dra.numa_hints,
        nri=_raw(agent, "nri"),
        cgroups=read_cgroups(agent.section("cgroups")),
    )
    _check_beside_kubelet(settings, agent)
    problems.refuse()
    return settings


def _shutdown(document: object, numalign: Section) -> ShutdownSettings | None:
    """How pods end; None where nobody says that the node shuts down, or they have no time to."""
    said = read_shutdown(numalign.section("admission").section("shutdown"))
    if said.source is not ShutdownSource.LOGIND or not isinstance(document, Mapping):
        return None
    groups = read_chain_keys(document).grace_groups
    return ShutdownSettings(groups=groups, bus=said.bus) if groups else None


def _check_beside_kubelet(settings: AgentSettings, agent: Section) -> None:
    if settings.kubelet is None:
        return
    if settings.runner is not RunnerKind.RECORDER:
        agent.wrong("kubelet", "goes with runner: recorder only; its pods are run by the kubelet")
    if settings.file or settings.url or settings.api:
        agent.wrong(
            "kubelet",
            "goes without staticPodPath, staticPodURL and api: the kubelet has the pods of all "
            "of them, and reports them itself",
        )


def _sockets(numalign: Section, runtime: Path | None) -> Mapping[Service, Path]:
    directory = _optional_directory(numalign, "runtimeDirectory") or runtime
    if directory is None:
        numalign.wrong("runtimeDirectory", _NO_PLACE)
    return read_endpoints(numalign.section("endpoints"), directory or Path("/"))


def _state_directory(numalign: Section, agent: Section, default: Path | None) -> Path:
    own = _optional_directory(agent, "stateDirectory")
    if own is not None:
        return own
    shared = _optional_directory(numalign, "stateDirectory") or default
    if shared is None:
        agent.wrong("stateDirectory", _NO_PLACE)
        return Path("/")
    return shared / AGENT


def _optional_directory(section: Section, key: str) -> Path | None:
    text = section.text(key)
    if text and not text.startswith("/"):
        section.wrong(key, f"must be an absolute path, not {shown(text)}")
        return None
    return Path(text) if text else None


def _file(kubelet: Section, base: Path) -> FileSourceSettings | None:
    path = kubelet.text("staticPodPath").rstrip("/")
    every = kubelet.seconds("fileCheckFrequency", 20.0)
    return FileSourceSettings(path=base / path, every=every) if path else None


def _url(kubelet: Section) -> HttpSourceSettings | None:
    every = kubelet.seconds("httpCheckFrequency", 20.0)
    headers = kubelet.section("staticPodURLHeader")
    values = {name: _texts(headers, name) for name in headers.names()}
    url = _checked_url(kubelet, "staticPodURL", ("http", "https"))
    return HttpSourceSettings(url=url, headers=values, every=every) if url else None


def _texts(section: Section, key: str) -> tuple[str, ...]:
    texts = []
    for path, item in section.items(key):
        if isinstance(item, str):
            texts.append(item)
        else:
            section.problems.add(path, f"must be text, not {shown(item)}")
    return tuple(texts)


def _api(
    kubelet: Section, agent: Section, base: Path, dra_socket: Path | None
) -> ApiSettings | None:
    if agent.raw("api") is None:
        return None
    api = agent.section("api")
    api.refuse_unknown(("kubeconfig", "context", "ownNode"))
    path = api.text("kubeconfig")
    return ApiSettings(
        kubeconfig=base / path if path else None,
        context=api.text("context"),
        own_node=api.boolean("ownNode"),
        dra_socket=dra_socket,
        lease_seconds=float(kubelet.integer("nodeLeaseDurationSeconds", 40, 1)),
        status_every=kubelet.seconds("nodeStatusUpdateFrequency", 10.0),
    )


def _kubelet(agent: Section, base: Path) -> KubeletSourceSettings | None:
    if "kubelet" not in agent:
        return None
    inner = agent.section("kubelet")
    inner.refuse_unknown(("socket", "url", "tokenFile", "caFile", "frequency"))
    socket = inner.text("socket")
    url = _checked_url(inner, "url", ("https",))
    if bool(socket) == bool(inner.raw("url")):
        agent.wrong("kubelet", "must have either a socket or a url")
    token, authority = inner.text("tokenFile"), inner.text("caFile")
    return KubeletSourceSettings(
        socket=socket_path(inner, "socket", socket) if socket else None,
        url=url,
        token_file=base / token if token else None,
        ca_file=base / authority if authority else None,
        every=inner.seconds("frequency", 5.0),
    )


def _checked_url(section: Section, key: str, schemes: tuple[str, ...]) -> str:
    url = section.text(key)
    if not url:
        return ""
    try:
        parts = urlsplit(url)
    except ValueError as error:
        section.wrong(key, f"{shown(url)}: {error}")
        return ""
    if parts.scheme not in schemes or not parts.hostname:
        section.wrong(key, f"must be an {' or '.join(schemes)} URL, not {shown(url)}")
        return ""
    return url


def _http(agent: Section) -> HttpSettings | None:
    address = read_address(agent, "address")
    return None if address is None else HttpSettings(host=address.host, port=address.port)


def _raw(agent: Section, key: str) -> dict[str, object]:
    inner = agent.section(key)
    return {name: inner.raw(name) for name in inner.names()}
