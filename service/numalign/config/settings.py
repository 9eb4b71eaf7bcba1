"""Everything that a service is told at start, as one immutable value.

Separate from the files that read it, so that a service depends on values and not on YAML.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import TypeAlias

from numalign.admission.chain.place import Place
from numalign.admission.chain.version import ChainVersion
from numalign.model.feature_gates import FeatureGates
from numalign.model.machine import Machine
from numalign.model.settings import (
    CpuSettings,
    MemorySettings,
    Placement,
    StaticResource,
    TopologySettings,
)


class Service(StrEnum):
    """The services that have a socket of their own; the last one where it is enabled."""

    ADMISSION = "admission"
    TOPOLOGY = "topology"
    CPU = "cpu"
    MEMORY = "memory"
    DEVICE = "device"
    DRA = "dra"


CORE_SERVICES = (
    Service.ADMISSION,
    Service.TOPOLOGY,
    Service.CPU,
    Service.MEMORY,
    Service.DEVICE,
)
"""The services that every node has."""


class Compatibility(StrEnum):
    """Whether the kubelet's lifecycle faults are reproduced; chosen once, at start."""

    SAFE = "safe"
    KUBELET = "kubelet"


class Validation(StrEnum):
    """Who judges policy names and the like: the kubelet's validation, or the managers alone."""

    KUBELET = "kubelet"
    MANAGERS = "managers"


class FailurePolicy(StrEnum):
    """What an admission does when a provider does not answer."""

    FAIL = "Fail"
    IGNORE = "Ignore"


class DeviceSource(StrEnum):
    """Where devices come from: the configuration, plugins that register here, or a kubelet."""

    STATIC = "static"
    HOST = "host"
    OBSERVER = "observer"


class SecondOwner(StrEnum):
    """What becomes of a start where somebody else hands out the same resources."""

    REFUSE = "refuse"
    TOLERATE = "tolerate"


class LogLevel(StrEnum):
    """The least important lines that are written."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


class LogFormat(StrEnum):
    """How a log line looks."""

    JSON = "json"
    CONSOLE = "console"


@dataclass(frozen=True, slots=True)
class MachineRoot:
    """The machine is discovered below `path` (`/` for the one we run on)."""

    path: Path


@dataclass(frozen=True, slots=True)
class MachineFile:
    """The machine is described in the file at `path`."""

    path: Path


@dataclass(frozen=True, slots=True)
class MachineInline:
    """The machine is described in the configuration itself."""

    machine: Machine


MachineSource: TypeAlias = MachineRoot | MachineFile | MachineInline


@dataclass(frozen=True, slots=True, kw_only=True)
class SocketSettings:
    """Who may connect. Accounts are names or numbers.

    `owner` and `group` None leave them alone. `allow_uids` and `allow_gids` may connect beside
    root, the owner and the group.
    """

    mode: int = 0o660
    owner: str | int | None = None
    group: str | int | None = None
    allow_uids: tuple[str | int, ...] = ()
    allow_gids: tuple[str | int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitSettings:
    """What one server lets its callers have at once, and how long. Times are in seconds.

    `handshake_timeout` is for a connection to become one, `request_timeout` for a request to
    arrive once its headers have, `call_timeout` for a unary call whose caller set no earlier
    deadline, `stream_idle_timeout` between two requests of a stream.
    """

    connections: int = 256
    calls: int = 1024
    handshake_timeout: float = 10.0
    request_timeout: float = 10.0
    call_timeout: float = 60.0
    stream_idle_timeout: float = 300.0


@dataclass(frozen=True, slots=True, kw_only=True)
class TlsFiles:
    """PEM files of a TLS listener: its certificate chain, its key, whom its clients are of."""

    certificate: Path
    key: Path
    client_authority: Path


@dataclass(frozen=True, slots=True)
class Address:
    """Where HTTP is served; port 0 is any free one."""

    host: str
    port: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ListenSettings:
    """A TCP listener of the Admission service; its clients must have a certificate."""

    address: Address
    tls: TlsFiles


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigzSettings:
    """How to ask the kubelet for its configuration: an URL, and files with token and CA."""

    url: str
    token: Path | None = None
    authority: Path | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricsSettings:
    """Where metrics are served: `address` unless a service has its own; None is nowhere."""

    address: Address | None = None
    services: Mapping[Service, Address] = field(default_factory=dict)

    def address_of(self, service: Service) -> Address | None:
        """Where `service`, run on its own, serves its metrics."""
        return self.services.get(service, self.address)


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalSettings:
    """The journal of decisions: at most `size` bytes on disk, 0: none is kept."""

    size: int = 8 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class LogSettings:
    """What is logged, and how it looks."""

    level: LogLevel = LogLevel.INFO
    format: LogFormat = LogFormat.JSON


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderSettings:
    """A hint provider of somebody else. `timeout` is in seconds."""

    name: str
    socket: Path
    timeout: float
    failure_policy: FailurePolicy


@dataclass(frozen=True, slots=True, kw_only=True)
class DevicePluginSettings:
    """Where devices come from, and how long plugins are waited for. Times are in seconds.

    `directory` holds the registration socket and the plugins' own sockets; `plugins_registry`
    is what the plugin watcher looks at, None: nothing. A resource that was known before the
    start is waited for until `report_deadline`; pods that ask for it meanwhile may ask again
    after `retry_after`. An observer asks the kubelet on `pod_resources_socket`, and anew after
    `poll_interval`.
    """

    mode: DeviceSource = DeviceSource.STATIC
    directory: Path = Path("/var/lib/kubelet/device-plugins")
    plugins_registry: Path | None = Path("/var/lib/kubelet/plugins_registry")
    report_deadline: float = 300.0
    retry_after: float = 2.0
    pod_resources_socket: Path = Path("/var/lib/kubelet/pod-resources/kubelet.sock")
    poll_interval: float = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class DraSettings:
    """Resource claims and the drivers that prepare them. Times are in seconds.

    `plugins_registry` is where drivers are looked for. A driver may take `call_timeout` to
    answer; pods whose claims are not prepared yet may ask again after `retry_after`.
    `numa_hints`: the NUMA nodes of claimed devices count for where the rest of a container goes,
    which they do not in a kubelet.
    """

    enabled: bool = False
    plugins_registry: Path = Path("/var/lib/kubelet/plugins_registry")
    call_timeout: float = 45.0
    retry_after: float = 2.0
    numa_hints: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class AdmitHandlerSettings:
    """An admit handler of somebody else. `timeout` is in seconds; `place` None: the last one."""

    name: str
    socket: Path
    timeout: float
    failure_policy: FailurePolicy
    place: Place | None = None


class ShutdownSource(StrEnum):
    """Who says that the node shuts down: a call alone, or systemd-logind besides."""

    CALL = "call"
    LOGIND = "logind"


@dataclass(frozen=True, slots=True, kw_only=True)
class ShutdownSettings:
    """Who says that the node shuts down; `bus` is a D-Bus address, None: the system bus's."""

    source: ShutdownSource = ShutdownSource.CALL
    bus: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AdmissionSettings:
    """The chain of admit handlers; the kubelet's work once a Node object is known.

    `node_file` holds a Node object to start with, None: it is set by a call. `image_fs` and
    `node_fs` are directories on the filesystems of images and of pods. `handlers` are those of
    others.
    """

    chain: ChainVersion = ChainVersion.V1_36
    node_file: Path | None = None
    declared_features: tuple[str, ...] = ()
    node_fs: Path = Path("/var/lib/kubelet")
    image_fs: Path | None = None
    handlers: tuple[AdmitHandlerSettings, ...] = ()
    shutdown: ShutdownSettings = ShutdownSettings()


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The whole configuration, checked. `warnings` are for the log at start.

    `pod_resources` is the socket of the kubelet's pod resources interface; None: not served.
    `provider_timeout` is in seconds; `queue_depth` and `history_length` count admissions and
    changes. `provider_directories` may hold sockets of providers that register themselves,
    beside the runtime directory; those in `providers_registry` are looked for. `host_root` is
    where the node's files are looked for. `kubelet` is the KubeletConfiguration part of the
    document as decoded, for keys that only one service reads (eviction thresholds, allowed sysctls,
    grace periods).
    """

    topology: TopologySettings
    cpu: CpuSettings
    memory: MemorySettings
    gates: FeatureGates
    compatibility: Compatibility
    validation: Validation
    machine: MachineSource
    devices: tuple[StaticResource, ...]
    device_plugins: DevicePluginSettings
    dra: DraSettings
    placement: Placement
    providers: tuple[ProviderSettings, ...]
    provider_timeout: float
    queue_depth: int
    history_length: int
    owner: str
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
    metrics: MetricsSettings
    journal: JournalSettings
    log: LogSettings
    kubelet: Mapping[str, object]
    warnings: tuple[str, ...] = ()

    @property
    def services(self) -> tuple[Service, ...]:
        """The services of this node."""
        return (*CORE_SERVICES, Service.DRA) if self.dra.enabled else CORE_SERVICES
