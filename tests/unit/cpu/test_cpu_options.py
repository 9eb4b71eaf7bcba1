"""Options of the static policy, and everything else that construction refuses."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from tests.unit.cpu.cpu_machines import GATES, T8, T16, core, engine, machine

from numalign.cpu.engine import build_engine
from numalign.cpu.options import CpuOptions, OptionError, parse_options
from numalign.cpu.strategies import KUBELET
from numalign.errors import ConfigError, StartError
from numalign.model.feature_gates import FeatureGates
from numalign.model.machine import Machine
from numalign.model.settings import CpuSettings, TopologySettings


def refusal(options: Mapping[str, str], gates: FeatureGates = GATES) -> str:
    with pytest.raises(OptionError) as refused:
        parse_options(options, gates)
    return str(refused.value)


@pytest.mark.parametrize("value", ["1", "t", "T", "TRUE", "true", "True"])
def test_true_spellings(value: str) -> None:
    assert parse_options({"full-pcpus-only": value}, GATES) == CpuOptions(full_pcpus_only=True)


@pytest.mark.parametrize("value", ["0", "f", "F", "FALSE", "false", "False"])
def test_false_spellings(value: str) -> None:
    assert parse_options({"full-pcpus-only": value}, GATES) == CpuOptions()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        pytest.param({"bogus": "true"}, 'unknown CPU Manager Policy option: "bogus"', id="unknown"),
        pytest.param(
            {"full-pcpus-only": 'a"b'},
            'bad value for option "full-pcpus-only": strconv.ParseBool: parsing "a\\"b": '
            "invalid syntax",
            id="value",
        ),
        pytest.param(
            {"full-pcpus-only": "1", "distribute-cpus-across-cores": "1"},
            "static policy options full-pcpus-only and distribute-cpus-across-cores can not be "
            "used at the same time",
            id="conflict",
        ),
        pytest.param(
            {
                "prefer-align-cpus-by-uncorecache": "1",
                "distribute-cpus-across-numa": "1",
                "distribute-cpus-across-cores": "1",
            },
            "static policy options distribute-cpus-across-numa and distribute-cpus-across-cores "
            "can not be used at the same time",
            id="first conflict",
        ),
    ],
)
def test_refusals(options: Mapping[str, str], message: str) -> None:
    assert refusal(options) == message


@pytest.mark.parametrize("value", ["true", "false"])
def test_gates_count_even_for_a_false_option(value: str) -> None:
    off = FeatureGates(cpu_manager_policy_beta_options=False)

    assert refusal({"align-by-socket": value}, off) == (
        'CPU Manager Policy Alpha-level Options not enabled, but option "align-by-socket" provided'
    )
    assert refusal({"distribute-cpus-across-numa": value}, off) == (
        "CPU Manager Policy Beta-level Options not enabled, but option "
        '"distribute-cpus-across-numa" provided'
    )


def test_false_options_do_not_conflict() -> None:
    options = {"full-pcpus-only": "true", "distribute-cpus-across-cores": "false"}

    assert parse_options(options, GATES) == CpuOptions(full_pcpus_only=True)


def build(settings: CpuSettings, where: Machine = T8, topology_policy: str = "restricted") -> None:
    build_engine(settings, TopologySettings(policy=topology_policy), where, GATES, KUBELET)


MORE_SOCKETS = machine({0: [core(0), core(1, socket=1)]})


@pytest.mark.parametrize(
    ("settings", "where", "topology_policy", "message"),
    [
        pytest.param(
            CpuSettings(policy="dynamic"), T8, "none", 'unknown policy: "dynamic"', id="policy"
        ),
        pytest.param(
            CpuSettings(policy_options={"b": "1", "a": "2"}),
            T8,
            "none",
            "new none policy error: None policy: received unsupported options=map[a:2 b:1]",
            id="options of none",
        ),
        pytest.param(
            CpuSettings(policy="static", reserved_cpus="0"),
            machine({0: []}),
            "none",
            "could not detect number of cpus",
            id="no CPUs",
        ),
        pytest.param(
            CpuSettings(policy="static", reserved_cpus="0"),
            Machine(numa_nodes=machine({0: [core(0)]}).numa_nodes[:0], num_cpus=4),
            "none",
            "new static policy error: [cpumanager] unable to build the reserved physical CPUs "
            "from the reserved set: unknown CPU ID: 0",
            id="reserved CPU of an empty machine",
        ),
        pytest.param(
            CpuSettings(policy="static", reserved_cpus="0", reserved_milli_cpu=1001),
            T8,
            "none",
            "new static policy error: [cpumanager] unable to reserve the required amount of CPUs "
            "(size of 0 did not equal 2)",
            id="reserved list and amount",
        ),
        pytest.param(
            CpuSettings(policy="static", reserved_milli_cpu=9000),
            T8,
            "none",
            "new static policy error: [cpumanager] unable to reserve the required amount of CPUs "
            "(size of  did not equal 9)",
            id="more reserved than there are",
        ),
        pytest.param(
            CpuSettings(
                policy="static", reserved_cpus="0", policy_options={"align-by-socket": "true"}
            ),
            T16,
            "single-numa-node",
            "new static policy error: Topolgy manager single-numa-node policy is incompatible "
            "with CPUManager align-by-socket policy option",
            id="align by socket and policy",
        ),
        pytest.param(
            CpuSettings(
                policy="static", reserved_cpus="0", policy_options={"align-by-socket": "true"}
            ),
            MORE_SOCKETS,
            "restricted",
            "new static policy error: Align by socket is not compatible with hardware where "
            "number of sockets are more than number of NUMA",
            id="align by socket and sockets",
        ),
    ],
)
def test_construction_refuses(
    settings: CpuSettings, where: Machine, topology_policy: str, message: str
) -> None:
    with pytest.raises(StartError) as refused:
        build(settings, where, topology_policy)

    assert (refused.value.stage, str(refused.value)) == ("cpu_manager", message)


def test_reserved_list_must_be_a_list() -> None:
    with pytest.raises(ConfigError, match='reservedSystemCPUs "0-": '):
        build(CpuSettings(policy="static", reserved_cpus="0-"))


def test_allocatable_cpus() -> None:
    assert str(engine(T8, "0,4").allocatable) == "1-3,5-7"
    assert str(engine(T8, "", policy="none").allocatable) == ""
    assert str(engine(T8, "", policy="none").all_cpus) == "0-7"
