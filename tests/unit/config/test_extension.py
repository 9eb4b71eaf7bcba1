"""The `numalign` section: every key, its default, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from pathlib import Path

import pytest

from numalign.config.defaults import Defaults
from numalign.config.extension import EXTENSION_KEYS
from numalign.config.from_document import settings_from_document
from numalign.config.settings import (
    CORE_SERVICES,
    Address,
    Compatibility,
    ConfigzSettings,
    DevicePluginSettings,
    DeviceSource,
    DraSettings,
    FailurePolicy,
    LimitSettings,
    ListenSettings,
    LogFormat,
    LogLevel,
    LogSettings,
    MachineFile,
    MachineInline,
    MachineRoot,
    MetricsSettings,
    ProviderSettings,
    SecondOwner,
    Service,
    Settings,
    SocketSettings,
    TlsFiles,
    Validation,
)
from numalign.document.problems import DocumentError
from numalign.model.ids import DeviceId
from numalign.model.settings import (
    CpuSwitches,
    KernelHugePages,
    NumaAllocationStrategy,
    Placement,
    PluginPresence,
    PreferredAllocation,
    StaticDevice,
    StaticResource,
)

Read = Callable[[str], Settings]

WHOLE = """
topologyManagerPolicy: restricted
memoryManagerPolicy: Static
cpuManagerPolicy: static
cpuManagerPolicyOptions: {strict-cpu-reservation: "true", prefer-align-cpus-by-uncorecache: "1"}
numalign:
  compatibility: kubelet
  validation: managers
  runtimeDirectory: /run/a
  stateDirectory: /var/lib/a
  sockets: {mode: "0600", owner: 12, group: numalign, allow: {uids: [1000, agent], gids: [7]}}
  limits: {connections: 8, calls: 16, handshakeTimeout: 1s, requestTimeout: 2s, callTimeout: 3s,
           streamIdleTimeout: 4s}
  listen:
  - {address: "10.0.0.1:7443", tls: {cert: tls.crt, key: /etc/pki/tls.key, clientCA: ca.crt}}
  providerDirectories: [/run/providers]
  providersRegistry: /run/found
  secondOwner: tolerate
  hostRoot: /host
  kubeletConfigz: {url: "https://127.0.0.1:10250/configz", tokenFile: token}
  endpoints: {cpu: /run/b/cpu.sock, memory: "unix:///run/b/memory.sock"}
  machine: {root: captured}
  devices:
  - resource: example.com/gpu
    devices: [{id: g0, numa_nodes: [0]}, {id: g1, numa_nodes: [], healthy: false}, {id: g2}]
    preferred_allocation: lowest-id
    allocate_error: no such thing
    plugin: absent
  - resource: example.com/nic
  devicePlugins: {reportDeadline: 90s, retryAfter: 1s}
  dra: {enabled: true, pluginsRegistry: /pr, callTimeout: 9s, retryAfter: 3s,
        numaHints: true}
  placement: {numaAllocationStrategy: least-allocated, keepSharedCpus: true,
              reuseInitCpus: true, fewUncoreCaches: true,
              kernelHugePages: refuse}
  nodeAllocatableReservation: {cpu: 1, hugepages-2Mi: 4Mi}
  providers:
  - {name: licences, endpoint: /run/c.sock, timeout: 200ms, failurePolicy: Ignore}
  - {name: power.budget, endpoint: "unix:/run/d.sock"}
  providerTimeout: 2s
  queueDepth: 8
  historyLength: 16
  journal: {size: 1Mi}
  agent: {nodeName: read-by-the-agent}
  metrics: {address: "127.0.0.1:9464", services: {cpu: "[::1]:0"}}
  log: {level: debug, format: console}
  owner: tenant-a
  podResources: {socket: /run/e.sock}
  admission: {chain: v1.31, declaredFeatures: [SomeFeature], nodeFs: /pods}
"""


def test_every_key_is_in_the_whole_section() -> None:
    assert [key for key in EXTENSION_KEYS if f"\n  {key}:" not in WHOLE] == []


def test_whole_section(settings: Read) -> None:
    read = settings(WHOLE)

    assert read.compatibility is Compatibility.KUBELET
    assert read.validation is Validation.MANAGERS
    assert (read.runtime_directory, read.state_directory) == (Path("/run/a"), Path("/var/lib/a"))
    assert read.sockets == SocketSettings(
        mode=0o600,
        owner=12,
        group="numalign",
        allow_uids=(1000, "agent"),
        allow_gids=(7,),
    )
    assert read.limits == LimitSettings(
        connections=8,
        calls=16,
        handshake_timeout=1.0,
        request_timeout=2.0,
        call_timeout=3.0,
        stream_idle_timeout=4.0,
    )
    assert read.listen == (
        ListenSettings(
            address=Address("10.0.0.1", 7443),
            tls=TlsFiles(
                certificate=Path("/etc/numalign/tls.crt"),
                key=Path("/etc/pki/tls.key"),
                client_authority=Path("/etc/numalign/ca.crt"),
            ),
        ),
    )
    assert read.provider_directories == (Path("/run/providers"),)
    assert read.providers_registry == Path("/run/found")
    assert (read.second_owner, read.host_root) == (SecondOwner.TOLERATE, Path("/host"))
    assert read.kubelet_configz == ConfigzSettings(
        url="https://127.0.0.1:10250/configz", token=Path("/etc/numalign/token")
    )
    assert read.endpoints == {
        Service.ADMISSION: Path("/run/a/admission.sock"),
        Service.TOPOLOGY: Path("/run/a/topology.sock"),
        Service.CPU: Path("/run/b/cpu.sock"),
        Service.MEMORY: Path("/run/b/memory.sock"),
        Service.DEVICE: Path("/run/a/device.sock"),
        Service.DRA: Path("/run/a/dra.sock"),
    }
    assert read.machine == MachineRoot(Path("/etc/numalign/captured"))
    assert read.devices == (
        StaticResource(
            resource="example.com/gpu",
            devices=(
                StaticDevice(id=DeviceId("g0"), numa_nodes=(0,)),
                StaticDevice(id=DeviceId("g1"), numa_nodes=(), healthy=False),
                StaticDevice(id=DeviceId("g2"), numa_nodes=None),
            ),
            preferred_allocation=PreferredAllocation.LOWEST_ID,
            allocate_error="no such thing",
            plugin=PluginPresence.ABSENT,
        ),
        StaticResource(resource="example.com/nic"),
    )
    assert read.device_plugins == DevicePluginSettings(report_deadline=90.0, retry_after=1.0)
    assert read.dra == DraSettings(
        enabled=True,
        plugins_registry=Path("/pr"),
        call_timeout=9.0,
        retry_after=3.0,
        numa_hints=True,
    )
    assert read.placement == Placement(
        numa_allocation_strategy=NumaAllocationStrategy.LEAST_ALLOCATED,
        cpu=CpuSwitches(keep_shared=True, reuse_init=True, few_caches=True),
        kernel_huge_pages=KernelHugePages.REFUSE,
    )
    assert read.services == tuple(Service)
    assert read.cpu.reserved_milli_cpu == 1000
    assert read.providers == (
        ProviderSettings(
            name="licences",
            socket=Path("/run/c.sock"),
            timeout=0.2,
            failure_policy=FailurePolicy.IGNORE,
        ),
        ProviderSettings(
            name="power.budget",
            socket=Path("/run/d.sock"),
            timeout=2.0,
            failure_policy=FailurePolicy.FAIL,
        ),
    )
    assert (read.provider_timeout, read.queue_depth, read.history_length) == (2.0, 8, 16)
    assert read.metrics.address_of(Service.CPU) == Address("::1", 0)
    assert read.metrics.address_of(Service.ADMISSION) == Address("127.0.0.1", 9464)
    assert read.log == LogSettings(level=LogLevel.DEBUG, format=LogFormat.CONSOLE)
    assert read.owner == "tenant-a"
    assert read.pod_resources == Path("/run/e.sock")
    assert read.warnings == ()


def test_defaults(settings: Read) -> None:
    read = settings("")

    assert read.compatibility is Compatibility.SAFE
    assert read.validation is Validation.KUBELET
    assert read.runtime_directory == Path("/run/numalign")
    assert read.state_directory == Path("/var/lib/numalign")
    assert read.sockets == SocketSettings(mode=0o660, owner=None, group=None)
    assert read.limits == LimitSettings()
    assert read.listen == ()
    assert (read.second_owner, read.host_root) == (SecondOwner.REFUSE, Path("/"))
    assert read.endpoints == {
        service: Path(f"/run/numalign/{service.value}.sock") for service in Service
    }
    assert read.machine == MachineRoot(Path("/"))
    assert (read.devices, read.providers) == ((), ())
    assert read.device_plugins == DevicePluginSettings(
        mode=DeviceSource.STATIC,
        directory=Path("/var/lib/kubelet/device-plugins"),
        plugins_registry=Path("/var/lib/kubelet/plugins_registry"),
        report_deadline=300.0,
        retry_after=2.0,
    )
    assert read.dra == DraSettings()
    assert read.services == CORE_SERVICES
    assert (read.provider_timeout, read.queue_depth, read.history_length) == (5.0, 256, 4096)
    assert read.metrics == MetricsSettings()
    assert read.metrics.address_of(Service.CPU) is None
    assert read.log == LogSettings(level=LogLevel.INFO, format=LogFormat.JSON)
    assert read.owner == "default"
    assert read.pod_resources is None


def test_pod_resources_are_served_in_the_runtime_directory(settings: Read) -> None:
    read = settings("numalign: {runtimeDirectory: /run/a, podResources: {}}")

    assert read.pod_resources == Path("/run/a/pod-resources.sock")


def test_settings_cannot_be_changed(settings: Read) -> None:
    read = settings("")

    for item in fields(read):
        with pytest.raises(AttributeError):
            setattr(read, item.name, None)


def test_described_machines(settings: Read) -> None:
    inline = settings("numalign: {machine: {numa_nodes: [{id: 5}]}}").machine
    file = settings("numalign: {machine: {file: /etc/machine.yaml}}").machine

    assert isinstance(inline, MachineInline)
    assert inline.machine.node_ids() == (5,)
    assert file == MachineFile(Path("/etc/machine.yaml"))


@pytest.mark.parametrize(
    "content",
    [
        pytest.param([{"resource": "example.com/nic"}], id="a list"),
        pytest.param({"devices": [{"resource": "example.com/nic"}]}, id="a devices key"),
    ],
)
def test_inventory_file(content: object, defaults: Callable[..., Defaults]) -> None:
    asked: list[Path] = []

    def read_file(path: Path) -> object:
        asked.append(path)
        return content

    read = settings_from_document(
        {"numalign": {"devices": {"file": "inventory.yaml"}}}, defaults(read_file)
    )

    assert asked == [Path("/etc/numalign/inventory.yaml")]
    assert read.devices == (StaticResource(resource="example.com/nic"),)


def test_mistakes_in_an_inventory_file_name_it(defaults: Callable[..., Defaults]) -> None:
    with pytest.raises(DocumentError) as refused:
        settings_from_document(
            {"numalign": {"devices": {"file": "/a/b.yaml"}}},
            defaults(lambda _: {"devices": [{"id": 1}], "x": 1}),
        )

    assert refused.value.problems == (
        "/a/b.yaml.x: unknown key",
        "/a/b.yaml.devices[0].id: unknown key",
        "/a/b.yaml.devices[0].resource: must be given",
    )


def test_sockets_for_everybody_are_a_warning(settings: Read) -> None:
    read = settings('numalign: {sockets: {mode: "666"}}')

    assert read.warnings == ("numalign.sockets.mode: 0666 lets every user of the node connect",)


@pytest.mark.parametrize(
    ("section", "problem"),
    [
        ("{mode: safe}", "numalign.mode: unknown key"),
        ("[]", "numalign: must be a mapping, not a list"),
        ("{compatibility: both}",
         'numalign.compatibility: must be one of "safe", "kubelet", not "both"'),
        ("{runtimeDirectory: run}",
         'numalign.runtimeDirectory: must be an absolute path, not "run"'),
        ("{stateDirectory: 1}",
         "numalign.stateDirectory: must be text, not 1 (write it in quotes)"),
        ("{sockets: {mode: 0660}}",
         "numalign.sockets.mode: must be text, not 432 (write it in quotes)"),
        ("{sockets: {mode: rw}}",
         'numalign.sockets.mode: must be octal text such as "0660", not "rw"'),
        ("{sockets: {group: -1}}",
         "numalign.sockets.group: must be text, not -1 (write it in quotes)"),
        ("{sockets: {user: a}}", "numalign.sockets.user: unknown key"),
        ("{endpoints: {gpu: /a}}", "numalign.endpoints.gpu: unknown key"),
        ("{endpoints: {cpu: a.sock}}",
         'numalign.endpoints.cpu: must be the absolute path of a Unix socket, not "a.sock"'),
        ("{endpoints: {cpu: /run/numalign/memory.sock}}",
         "numalign.endpoints.memory: is the socket of cpu too"),
        (f"{{endpoints: {{cpu: /{'x' * 107}}}}}",
         f"numalign.endpoints.cpu: /{'x' * 107} has 108 bytes; a socket takes 107"),
        ("{podResources: {socket: /run/numalign/cpu.sock}}",
         "numalign.podResources.socket: is the socket of cpu too"),
        ("{podResources: {path: /a}}", "numalign.podResources.path: unknown key"),
        ("{machine: {root: /, file: /m}}", "numalign.machine: has both root and file"),
        ("{machine: {root: /, numa_nodes: []}}", "numalign.machine.numa_nodes: unknown key"),
        ("{machine: {file: ''}}", "numalign.machine.file: must be given"),
        ("{machine: {numa_nodes: [{id: 70}]}}",
         "numalign.machine.numa_nodes[0].id: NUMA node 70: ids above 63 are not supported"),
        ("{devices: [{resource: a.b/c, devices: [{id: x, numa_nodes: [64]}]}]}",
         "numalign.devices[0].devices[0].numa_nodes: NUMA ids must lie between 0 and 63"),
        ("{devices: [{resource: a.b/c, devices: [{id: x}, {id: x}]}]}",
         "numalign.devices[0].devices[1].id: x is given twice"),
        ("{devices: [{resource: cpu}]}",
         'numalign.devices[0].resource: "cpu" is no extended resource, such as vendor.example/gpu'),
        ("{devices: [{resource: hugepages-2Mi}]}",
         ('numalign.devices[0].resource: "hugepages-2Mi" is no extended resource, such as '
          'vendor.example/gpu')),
        ("{devices: [{resource: a.kubernetes.io/b}]}",
         ('numalign.devices[0].resource: "a.kubernetes.io/b" is no extended resource, such as '
          'vendor.example/gpu')),
        ("{devices: [{resource: a.b/c}, {resource: a.b/c}]}",
         "numalign.devices[1].resource: a.b/c is given twice"),
        ("{devices: [{resource: a.b/c, devices: [{name: x}]}]}",
         "numalign.devices[0].devices[0].name: unknown key"),
        ("{devices: [{resource: a.b/c, plugin: gone}]}",
         ('numalign.devices[0].plugin: must be one of "registered", "disconnected", "absent", '
          'not "gone"')),
        ("{devices: {path: a}}", "numalign.devices.path: unknown key"),
        ("{nodeAllocatableReservation: {gpu: 1}}",
         "numalign.nodeAllocatableReservation.gpu: cannot be reserved"),
        ("{nodeAllocatableReservation: {cpu: -1}}",
         "numalign.nodeAllocatableReservation.cpu: must not be negative: -1"),
        ("{providers: [{name: cpu, endpoint: /a}]}",
         'numalign.providers[0].name: "cpu" is taken'),
        ("{providers: [{name: A, endpoint: /a}]}",
         'numalign.providers[0].name: must be lower case letters, digits, - and ., not "A"'),
        ("{providers: [{name: a, endpoint: /a, failurePolicy: Retry}]}",
         'numalign.providers[0].failurePolicy: must be one of "Fail", "Ignore", not "Retry"'),
        ("{providers: [{name: a, endpoint: /a, timeout: soon}]}",
         'numalign.providers[0].timeout: must be a duration such as 5s or 1m30s, not "soon"'),
        ("{providers: [{endpoint: /a}]}", "numalign.providers[0].name: must be given"),
        ("{providers: [{name: a}]}", "numalign.providers[0].endpoint: must be given"),
        ("{providerTimeout: 5}",
         "numalign.providerTimeout: must be text, not 5 (write it in quotes)"),
        ("{queueDepth: 0}", "numalign.queueDepth: must be at least 1, not 0"),
        ("{historyLength: many}", 'numalign.historyLength: must be a whole number, not "many"'),
        ("{metrics: {address: 9464}}",
         "numalign.metrics.address: must be text, not 9464 (write it in quotes)"),
        ('{metrics: {address: "127.0.0.1:65536"}}',
         'numalign.metrics.address: must be host:port, not "127.0.0.1:65536"'),
        ("{metrics: {services: {nri: a}}}", "numalign.metrics.services.nri: unknown key"),
        ("{dra: {numaNodes: 1}}", "numalign.dra.numaNodes: unknown key"),
        ("{dra: {pluginsRegistry: pr}}",
         'numalign.dra.pluginsRegistry: must be an absolute path, not "pr"'),
        ("{dra: {enabled: 1}}", "numalign.dra.enabled: must be true or false, not 1"),
        ("{log: {level: loud}}",
         'numalign.log.level: must be one of "debug", "info", "warning", "error", not "loud"'),
        ("{log: {file: a}}", "numalign.log.file: unknown key"),
        ("{owner: ''}", "numalign.owner: must not be empty"),
    ],
)  # fmt: skip
def test_refused(section: str, problem: str, settings: Read) -> None:
    with pytest.raises(DocumentError) as refused:
        settings(f"numalign: {section}")

    assert problem in refused.value.problems
