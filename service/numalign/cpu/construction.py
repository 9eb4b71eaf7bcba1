"""From settings and machine to a policy, or to the kubelet's reason why not.

Rules CPU-1, CPU-2, CPU-6, CPU-7 and CPU-15..CPU-21, in the kubelet's order.
"""

from __future__ import annotations

from numalign.cpu.hints import HintTable
from numalign.cpu.options import CpuOptions, OptionError, check_options, parse_options
from numalign.cpu.reserved import ReservationError, reserve, reserved_count
from numalign.cpu.sizes import Sizes
from numalign.cpu.static_setup import StaticSetup, near_cpus
from numalign.cpu.take import Taker
from numalign.cpu.take_few_caches import FewCaches
from numalign.cpu.take_few_sockets import FewSockets
from numalign.cpu.topology import CpuTopology, TopologyError, discover
from numalign.errors import ConfigError, StartError
from numalign.model.cpu_set import CpuSet, CpuSetSyntaxError
from numalign.model.feature_gates import FeatureGates
from numalign.model.machine import Machine
from numalign.model.quoting import quoted
from numalign.model.settings import CpuSettings, CpuSwitches

STAGE = "cpu_manager"

OPTIONS = "cpuManagerPolicyOptions"
RESERVED = "reservedSystemCPUs"
"""Keys of the configuration, named in refusals."""


def cpu_topology(machine: Machine) -> CpuTopology:
    """The CPUs of the machine. Raises StartError (CPU-9, CPU-10)."""
    try:
        return discover(machine)
    except TopologyError as error:
        raise StartError(STAGE, str(error)) from error


def check_none(settings: CpuSettings) -> None:
    """Refuse options with the policy `none` (CPU-2)."""
    options = settings.policy_options
    if options:
        written = " ".join(f"{name}:{options[name]}" for name in sorted(options))
        raise StartError(
            STAGE,
            f"new none policy error: None policy: received unsupported options=map[{written}]",
            setting=OPTIONS,
        )


def unknown_policy(name: str) -> StartError:
    """The refusal of a policy that does not exist (CPU-1)."""
    return StartError(STAGE, f"unknown policy: {quoted(name)}", setting="cpuManagerPolicy")


def static_setup(
    settings: CpuSettings,
    topology_policy: str,
    topology: CpuTopology,
    gates: FeatureGates,
    sizes: Sizes,
    switches: CpuSwitches,
) -> StaticSetup:
    """The static policy's setup.

    Raises StartError with the kubelet's text, and ConfigError for a reserved list that is
    no CPU list.
    """
    try:
        listed = CpuSet.parse(settings.reserved_cpus)
    except CpuSetSyntaxError as error:
        raise ConfigError(f"{RESERVED} {quoted(settings.reserved_cpus)}: {error}") from error
    try:
        count = reserved_count(settings)
    except ReservationError as error:
        raise StartError(STAGE, str(error), setting=RESERVED) from error
    try:
        options = parse_options(settings.policy_options, gates)
        check_options(options, topology, topology_policy)
        take = sizes(topology, options)
        reservation = reserve(listed, count, topology, take)
        # What is reserved stays the kubelet's choice.
        take = _switched(take, topology, options, switches)
    except (OptionError, ReservationError) as error:
        raise StartError(
            STAGE,
            f"new static policy error: {error}",
            setting=OPTIONS if isinstance(error, OptionError) else RESERVED,
        ) from error
    return StaticSetup(
        topology=topology,
        options=options,
        gates=gates,
        reservation=reservation,
        take=take,
        table=HintTable(topology, align_by_socket=options.align_by_socket),
        near=near_cpus(topology, by_socket=options.align_by_socket),
        switches=switches,
    )


def _switched(
    take: Taker, topology: CpuTopology, options: CpuOptions, switches: CpuSwitches
) -> Taker:
    """`take`, or what a switch has in its place; the options exclude each other (CPU-5)."""
    whole_cores = options.full_pcpus_only
    if switches.few_caches and options.prefer_align_cpus_by_uncorecache:
        return FewCaches(topology, whole_cores=whole_cores)
    if switches.few_sockets and options.distribute_cpus_across_numa and options.align_by_socket:
        return FewSockets(topology, take, whole_cores=whole_cores)
    return take
