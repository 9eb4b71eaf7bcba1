"""The `numalign` section: what a KubeletConfiguration has no key for.

Unknown keys are refused with their path. Reading never stops at the first mistake.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from numalign.config.admission_chain import read_admission
from numalign.config.configz import read_configz
from numalign.config.defaults import Defaults
from numalign.config.device_plugins import read_device_plugins
from numalign.config.dra import read_dra
from numalign.config.inventory import read_inventory
from numalign.config.journal import read_journal
from numalign.config.limits import read_limits
from numalign.config.listening import read_listeners
from numalign.config.placement import read_placement
from numalign.config.reservation import is_reservable
from numalign.config.serving import (
    read_address,
    read_endpoints,
    read_pod_resources,
    read_sockets,
    socket_path,
)
from numalign.config.settings import (
    AdmissionSettings,
    Compatibility,
    ConfigzSettings,
    DevicePluginSettings,
    DeviceSource,
    DraSettings,
    FailurePolicy,
    JournalSettings,
    LimitSettings,
    ListenSettings,
    LogFormat,
    LogLevel,
    LogSettings,
    MachineFile,
    MachineInline,
    MachineRoot,
    MachineSource,
    MetricsSettings,
    ProviderSettings,
    SecondOwner,
    Service,
    SocketSettings,
    Validation,
)
from numalign.document.section import Section, shown
from numalign.machine.schema import read_machine_section
from numalign.model.quantity import Quantity
from numalign.model.quoting import quoted
from numalign.model.settings import Placement, StaticResource

EXTENSION_KEYS = (
    "compatibility", "validation", "runtimeDirectory", "stateDirectory", "sockets", "endpoints",
    "machine", "devices", "devicePlugins", "dra", "nodeAllocatableReservation", "providers",
    "providerTimeout",
    "queueDepth", "historyLength", "metrics", "log", "owner", "podResources", "limits", "listen",
    "providerDirectories", "providersRegistry",
    "secondOwner", "hostRoot", "kubeletConfigz", "admission",
    "journal", "placement",
    # Read by numalign-agent, which may share the file.
    "agent",
)  # fmt: skip

DEFAULT_PROVIDER_TIMEOUT = 5.0
DEFAULT_QUEUE_DEPTH = 256
DEFAULT_HISTORY_LENGTH = 4096
DEFAULT_OWNER = "default"

BUILT_IN_PROVIDERS = frozenset({"device", "cpu", "memory", "dra"})
_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]{0,61}[a-z0-9])?\Z")


@dataclass(frozen=True, slots=True, kw_only=True)
class Extension:
    """What the section says. `stated_reservation` None: the kubelet's sum applies."""

    compatibility: Compatibility
    validation: Validation
    runtime_directory: Path
    state_directory: Path
    sockets: SocketSettings
    limits: LimitSettings
    listen: tuple[ListenSettings, ...]
    endpoints: Mapping[Service, Path]
    pod_resources: Path | None
    admission: AdmissionSettings
    provider_directories: tuple[Path, ...]
    providers_registry: Path | None
    second_owner: SecondOwner
    host_root: Path
    kubelet_configz: ConfigzSettings | None
    machine: MachineSource
    devices: tuple[StaticResource, ...]
    device_plugins: DevicePluginSettings
    dra: DraSettings
    placement: Placement
    stated_reservation: Mapping[str, Quantity] | None
    providers: tuple[ProviderSettings, ...]
    provider_timeout: float
    queue_depth: int
    history_length: int
    metrics: MetricsSettings
    journal: JournalSettings
    log: LogSettings
    owner: str


def read_extension(section: Section, defaults: Defaults) -> Extension:
    """Read the section; mistakes are recorded in its problems."""
    section.refuse_unknown(EXTENSION_KEYS)
    runtime = _directory(section, "runtimeDirectory", defaults.directories.runtime)
    endpoints = read_endpoints(section.section("endpoints"), runtime)
    timeout = section.seconds("providerTimeout", DEFAULT_PROVIDER_TIMEOUT)
    return Extension(
        compatibility=section.choice("compatibility", Compatibility.SAFE),
        validation=section.choice("validation", Validation.KUBELET),
        runtime_directory=runtime,
        state_directory=_directory(section, "stateDirectory", defaults.directories.state),
        sockets=read_sockets(section.section("sockets")),
        limits=read_limits(section.section("limits")),
        listen=read_listeners(section, "listen", defaults.base_directory),
        endpoints=endpoints,
        pod_resources=read_pod_resources(section, "podResources", runtime, endpoints),
        admission=read_admission(section.section("admission"), defaults.base_directory, timeout),
        provider_directories=_directories(section, "providerDirectories"),
        providers_registry=_directory(section, "providersRegistry", Path("/"))
        if "providersRegistry" in section
        else None,
        second_owner=section.choice("secondOwner", SecondOwner.REFUSE),
        host_root=_directory(section, "hostRoot", Path("/")),
        kubelet_configz=read_configz(section, "kubeletConfigz", defaults.base_directory),
        machine=_machine(section, defaults.base_directory),
        devices=_devices(section, defaults),
        device_plugins=_device_plugins(section),
        dra=read_dra(section.section("dra")),
        placement=read_placement(section.section("placement")),
        stated_reservation=_reservation(section),
        providers=_providers(section, timeout),
        provider_timeout=timeout,
        queue_depth=section.integer("queueDepth", DEFAULT_QUEUE_DEPTH, 1),
        history_length=section.integer("historyLength", DEFAULT_HISTORY_LENGTH, 1),
        metrics=_metrics(section.section("metrics")),
        journal=read_journal(section.section("journal")),
        log=_log(section.section("log")),
        owner=_owner(section),
    )


def _directory(section: Section, key: str, default: Path | None) -> Path:
    """An absolute directory; a wrong one is recorded and `/` stands in for it."""
    if key in section:
        path = Path(section.text(key, "/"))
        if path.is_absolute():
            return path
        section.wrong(key, f"must be an absolute path, not {shown(section.raw(key))}")
        return Path("/")
    if default is None:
        section.wrong(key, "must be given: neither HOME nor an XDG directory is set")
        return Path("/")
    return default


def _directories(section: Section, key: str) -> tuple[Path, ...]:
    found = []
    for path, item in section.items(key):
        directory = Path(item) if isinstance(item, str) else None
        if directory is None or not directory.is_absolute():
            section.problems.add(path, f"must be an absolute path, not {shown(item)}")
        else:
            found.append(directory)
    return tuple(found)


def _machine(section: Section, base: Path) -> MachineSource:
    inner = section.section("machine")
    if "root" in inner or "file" in inner:
        inner.refuse_unknown(("root", "file"))
        if "root" in inner and "file" in inner:
            section.wrong("machine", "has both root and file")
        if "root" in inner:
            return MachineRoot(base / inner.required_text("root"))
        return MachineFile(base / inner.required_text("file"))
    if inner.names():
        return MachineInline(read_machine_section(inner))
    return MachineRoot(Path("/"))


def _devices(section: Section, defaults: Defaults) -> tuple[StaticResource, ...]:
    if not isinstance(section.raw("devices"), Mapping):
        return read_inventory(section, "devices")
    inner = section.section("devices")
    inner.refuse_unknown(("file",))
    name = inner.required_text("file")
    if not name:
        return ()
    path = defaults.base_directory / name
    document = defaults.read_file(path)
    if not isinstance(document, Mapping):
        document = {"devices": document}
    outside = Section(document, str(path), section.problems)
    outside.refuse_unknown(("devices",))
    return read_inventory(outside, "devices")


def _device_plugins(section: Section) -> DevicePluginSettings:
    settings = read_device_plugins(section.section("devicePlugins"))
    if settings.mode is not DeviceSource.STATIC and section.raw("devices"):
        section.wrong("devices", f"cannot be given with devicePlugins.mode {settings.mode.value}")
    return settings


def _reservation(section: Section) -> Mapping[str, Quantity] | None:
    key = "nodeAllocatableReservation"
    if key not in section:
        return None
    stated = section.quantity_map(key)
    inner = section.section(key)
    for name, quantity in stated.items():
        if not is_reservable(name):
            inner.wrong(name, "cannot be reserved")
        if quantity.sign() < 0:
            inner.wrong(name, f"must not be negative: {quantity}")
    return stated


def _providers(section: Section, timeout: float) -> tuple[ProviderSettings, ...]:
    providers: list[ProviderSettings] = []
    taken = set(BUILT_IN_PROVIDERS)
    for item in section.sections("providers"):
        item.refuse_unknown(("name", "endpoint", "timeout", "failurePolicy"))
        name = item.required_text("name")
        if name and not _NAME.match(name):
            item.wrong("name", f"must be lower case letters, digits, - and ., not {quoted(name)}")
        if name in taken:
            item.wrong("name", f"{quoted(name)} is taken")
        taken.add(name)
        providers.append(
            ProviderSettings(
                name=name,
                socket=socket_path(item, "endpoint", item.required_text("endpoint")),
                timeout=item.seconds("timeout", timeout),
                failure_policy=item.choice("failurePolicy", FailurePolicy.FAIL),
            )
        )
    return tuple(providers)


def _metrics(section: Section) -> MetricsSettings:
    section.refuse_unknown(("address", "services"))
    services = section.section("services")
    services.refuse_unknown(Service)
    addresses = {service: read_address(services, service.value) for service in Service}
    return MetricsSettings(
        address=read_address(section, "address"),
        services={service: found for service, found in addresses.items() if found is not None},
    )


def _log(section: Section) -> LogSettings:
    section.refuse_unknown(("level", "format"))
    return LogSettings(
        level=section.choice("level", LogLevel.INFO),
        format=section.choice("format", LogFormat.JSON),
    )


def _owner(section: Section) -> str:
    owner = section.text("owner", DEFAULT_OWNER)
    if not owner:
        section.wrong("owner", "must not be empty")
    return owner
