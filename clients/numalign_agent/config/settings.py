"""The configuration of one agent, as one value.

Separate from reading it, so that whoever uses a setting depends on no document. Durations are
in seconds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from numalign.admission.handlers.node_shutdown import GraceGroup
from numalign.model.feature_gates import FeatureGates
from numalign_agent.cgroups.settings import CgroupSettings
from numalign_agent.config.enforce import Enforce


class RunnerKind(StrEnum):
    """What starts and ends containers."""

    PROCESS = "process"
    RECORDER = "recorder"


@dataclass(frozen=True, slots=True, kw_only=True)
class FileSourceSettings:
    """`staticPodPath` and `fileCheckFrequency` (CFG-2)."""

    path: Path
    every: float = 20.0


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpSourceSettings:
    """`staticPodURL`, `staticPodURLHeader` and `httpCheckFrequency` (CFG-10)."""

    url: str
    headers: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    every: float = 20.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiSettings:
    """How to reach the API server. `kubeconfig` None: the pod's own service account.

    `dra_socket` is that of the service for resource claims, None: numalign does not serve them.
    """

    kubeconfig: Path | None = None
    context: str = ""
    own_node: bool = False
    dra_socket: Path | None = None
    lease_seconds: float = 40.0
    status_every: float = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class KubeletSourceSettings:
    """A kubelet whose pods are followed: its pods API's socket, or its HTTPS `/pods`."""

    socket: Path | None = None
    url: str = ""
    token_file: Path | None = None
    ca_file: Path | None = None
    every: float = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ShutdownSettings:
    """How pods end when systemd-logind says that the node shuts down; `bus` as for Admission."""

    groups: tuple[GraceGroup, ...]
    bus: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpSettings:
    """Where `/metrics` and `/healthz` are served; port 0 is any free one."""

    host: str
    port: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentSettings:
    """One agent. A source that is None is not there; no source at all is legal (CFG-1).

    `nri` is the section of this name as it stands in the document. `claim_hints`: the services
    want to know where claimed devices sit (`numalign.dra.numaHints`).
    """

    node_name: str
    owner: str
    admission_socket: Path
    state_directory: Path
    log_level: str = "info"
    log_format: str = "json"
    file: FileSourceSettings | None = None
    url: HttpSourceSettings | None = None
    api: ApiSettings | None = None
    kubelet: KubeletSourceSettings | None = None
    runner: RunnerKind = RunnerKind.PROCESS
    enforce: Enforce = Enforce.AUTO
    pod_logs_directory: Path | None = None
    http: HttpSettings | None = None
    shutdown: ShutdownSettings | None = None
    sync_every: float = 60.0
    reconcile_every: float = 10.0
    check_every: float = 10.0
    journal_entries: int = 10_000
    gates: FeatureGates = field(default_factory=FeatureGates)
    claim_hints: bool = False
    nri: Mapping[str, object] = field(default_factory=dict)
    cgroups: CgroupSettings = field(default_factory=CgroupSettings)
