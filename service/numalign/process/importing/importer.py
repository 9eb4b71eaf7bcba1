"""Taking over a kubelet's assignments into our own state files, while no service runs.

Each provider's engine takes what it can have of what the kubelet's file says, exactly as it
takes back what it lost; what does not fit the machine or the configuration is named and left
out. With the pods at hand they are recorded as admitted; without them the Topology Manager
keeps what the providers hold until an agent says what it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from numalign.config.machine_source import configured_machine
from numalign.config.settings import CORE_SERVICES, DeviceSource, Service, Settings
from numalign.device import state_codec
from numalign.device.engine import DeviceEngine
from numalign.device.state import DeviceState, StoredDevices
from numalign.errors import StateError
from numalign.model.ids import AdmissionId, PodUid
from numalign.model.pod import Pod
from numalign.model.qos import qos_class
from numalign.process.compatibility import strategies_of
from numalign.process.generation import Generation
from numalign.process.importing.allocated import allocated_pods
from numalign.process.importing.checkpoints import (
    CPU_FILE,
    DEVICE_FILES,
    MEMORY_FILE,
    Found,
    read_cpu,
    read_devices,
    read_memory,
)
from numalign.process.layout import KEEPING, refuse_other_layout, state_name
from numalign.process.provider_context import ProviderContext
from numalign.process.provider_parts import (
    build_cpu_engine,
    build_device_engine,
    build_memory_engine,
)
from numalign.process.record_number import new_record
from numalign.provider.engine import Engine, Lost
from numalign.provider.messages import holding_to_message, pod_holding_to_message
from numalign.provider.pod_cache import PodCache
from numalign.store.admission_store import AdmissionStore
from numalign.store.database import Database
from numalign.store.node_facts import NodeFacts
from numalign.store.process_lock import ProcessLock
from numalign.store.provider_store import ProviderStore
from numalign.store.state_file import set_aside
from numalign.telemetry.logs import get_logger
from numalign.telemetry.metrics import Metrics
from numalign.topology.agreement import add_problem
from numalign.topology.allocated import resources_to_message
from numalign.topology.messages import containers_to_messages
from numalign.topology.records import Admitted
from numalign.v1 import types_pb2 as pb

_log = get_logger("import")


@dataclass(slots=True)
class Imported:
    """What was taken over, what was not, and what is worth knowing; a line each."""

    taken: list[str] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


@dataclass(slots=True)
class _Provider:
    engine: Engine[Any]
    found: Found
    state: Any


async def import_kubelet(
    settings: Settings,
    root: Path,
    pods: Sequence[bytes] | None,
    *,
    together: bool,
    replace: bool,
) -> Imported:
    """Take over the state files below `root`, a kubelet's root directory.

    `pods` are serialised v1.Pods to record as admitted. `together`: one state file for all
    services, else one each. `replace`: a state that holds pods is set aside, else it refuses.
    Raises StateError where a service runs or the state holds pods, StartError and ConfigError
    where the configuration would not start.
    """
    files = (CPU_FILE, MEMORY_FILE, *DEVICE_FILES)
    if not any((root / file).exists() for file in files):
        raise StateError(f"{root} holds no state file of a kubelet: {', '.join(map(str, files))}")
    outcome = Imported()
    cache = PodCache()
    context = ProviderContext(
        settings=settings,
        machine=configured_machine(settings.machine).machine,
        strategies=strategies_of(settings.compatibility),
        pods=cache,
        durable=True,
        metrics=Metrics((), enabled=False),
    )
    providers = _providers(context, root, outcome)
    names = (
        [state_name(None)] if together else [state_name(s) for s in CORE_SERVICES if s in KEEPING]
    )
    refuse_other_layout(settings.state_directory, together=together)
    if replace:
        _set_aside(settings.state_directory, names, outcome)
    async with AsyncExitStack() as open_files:
        databases: dict[str, Database] = {}
        for name in names:
            databases[name] = Database.open(settings.state_directory, name, report=_log.warning)
            open_files.push_async_callback(databases[name].close)
        await _refuse_held(databases, providers)
        for provider in providers:
            _restore(provider, outcome)
            file = databases[state_name(None) if together else provider.engine.name]
            store = ProviderStore(file, provider.engine.name, durable=True)
            await store.save(_encoded(provider, settings), synced=True)
        record = databases[state_name(None) if together else Service.TOPOLOGY.value]
        given = None
        if pods is not None:
            allocated = allocated_pods(root, pods, settings.gates)
            outcome.notes += allocated.notes
            outcome.left_out += allocated.left_out
            given = [(data, cache.decode(data)) for data in allocated.pods]
        await _record(record, settings, providers, given, outcome)
    return outcome


def _providers(context: ProviderContext, root: Path, outcome: Imported) -> list[_Provider]:
    settings = context.settings
    found: list[tuple[Engine[Any], Found]] = [
        (build_cpu_engine(context), read_cpu(root, settings)),
        (build_memory_engine(context), read_memory(root, settings)),
    ]
    if settings.device_plugins.mode is DeviceSource.OBSERVER:
        outcome.notes.append("devices: the kubelet goes on owning them (devicePlugins.mode)")
    else:
        device, _ = build_device_engine(context)
        found.append((device, read_devices(root)))
    return [_Provider(engine, file, engine.start(None).state) for engine, file in found]


def _set_aside(directory: Path, names: Iterable[str], outcome: Imported) -> None:
    for name in names:
        path = directory / f"{name}.db"
        if not path.exists():
            continue
        lock = ProcessLock.acquire(directory / f"{name}.lock")
        try:
            outcome.notes.append(f"the state before is kept as {set_aside(path, 'replaced')}")
        finally:
            lock.release()


async def _refuse_held(files: dict[str, Database], providers: list[_Provider]) -> None:
    for file in files.values():
        admitted = await AdmissionStore(file).load_all()
        held = {row.pod_uid for row in admitted.admissions}
        for provider in providers:
            engine = provider.engine
            stored = await ProviderStore(file, engine.name, durable=True).load()
            if stored.payload is not None:
                held |= engine.pods(engine.start(stored.payload).state)
        if held:
            raise StateError(
                f"{file.path} holds {len(held)} pods already; --replace sets it aside first"
            )


def _restore(provider: _Provider, outcome: Imported) -> None:
    engine, found = provider.engine, provider.found
    if found.problem:
        outcome.left_out.append(f"{engine.name}: {found.path}: {found.problem}")
        return
    outcome.notes += (f"{engine.name}: {note}" for note in found.notes)
    for recorded in found.pods:
        restored = engine.restore(provider.state, recorded)
        provider.state = restored.state
        outcome.left_out += (
            f"{engine.name}: {_about(recorded.pod_uid, lost)}" for lost in restored.lost
        )
        outcome.taken += (
            f"{engine.name}: pod {recorded.pod_uid}, container {holding.container}"
            for holding in engine.holdings(provider.state, recorded.pod_uid)
        )


def _encoded(provider: _Provider, settings: Settings) -> bytes:
    state, engine = provider.state, provider.engine
    if isinstance(state, DeviceState) and isinstance(engine, DeviceEngine):
        served = state.served
        if settings.device_plugins.mode is DeviceSource.HOST:
            # Plugins that the kubelet knew are waited for, as after a restart (DEV-46).
            served = tuple(sorted({*served, *provider.found.registered}))
        return state_codec.encode(StoredDevices(state.records, served))
    return engine.encode(state)


async def _record(
    file: Database,
    settings: Settings,
    providers: list[_Provider],
    pods: list[tuple[bytes, Pod]] | None,
    outcome: Imported,
) -> None:
    generation = await Generation.open(file, settings)
    store = AdmissionStore(file)
    await store.begin(new_record())
    for data, pod in pods or ():
        message = _message(pod, settings, providers, generation.number)
        admitted = Admitted(AdmissionId(f"import-{pod.uid}"), data, message)
        await store.commit(admitted.row(), synced=True)
        outcome.taken.append(f"record: pod {pod.namespace}/{pod.name} ({pod.uid})")
        outcome.notes += (f"pod {pod.uid}: {problem}" for problem in message.problems)
    strays = _held(providers) - {pod.uid for _, pod in pods or ()}
    if strays or pods is None:
        outcome.notes += (
            f"pod {uid}: not among the pods given; what it holds is kept until an agent says "
            "what it is"
            for uid in sorted(strays)
        )
    else:
        await NodeFacts(file).note_whole_record()


def _message(
    pod: Pod, settings: Settings, providers: list[_Provider], generation: int
) -> pb.AdmissionRecord:
    record = pb.AdmissionRecord(
        pod_uid=pod.uid,
        namespace=pod.namespace,
        name=pod.name,
        owner=settings.owner,
        qos_class=qos_class(pod, settings.gates),
        config_generation=generation,
        containers=containers_to_messages(pod),
        allocations=[pb.ContainerAllocation(container=c.name) for c in pod.all_containers()],
        resources=resources_to_message(pod, settings.gates),
    )
    by_name = {allocation.container: allocation for allocation in record.allocations}
    # Whether they have ended is not in the files; what they gave back is nothing to name.
    finished = frozenset(c.name for c in pod.init_containers if c.is_regular_init)
    for provider in providers:
        engine = provider.engine
        for holding in engine.holdings(provider.state, pod.uid):
            if holding.container in by_name:
                by_name[holding.container].MergeFrom(holding_to_message(holding))
        whole = pod_holding_to_message(engine.pod_holding(provider.state, pod.uid))
        record.pod_allocation.MergeFrom(whole)
        for lost in engine.missing(provider.state, pod, finished):
            add_problem(record, engine.name, lost.container, lost.message)
    return record


def _held(providers: Iterable[_Provider]) -> set[PodUid]:
    return {uid for provider in providers for uid in provider.engine.pods(provider.state)}


def _about(uid: PodUid, lost: Lost) -> str:
    container = f", container {lost.container}" if lost.container else ""
    return f"pod {uid}{container}: {lost.message}"
