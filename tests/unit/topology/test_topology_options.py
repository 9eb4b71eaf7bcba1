"""Policy options of the Topology Manager: values, limits and the texts of mistakes."""

from __future__ import annotations

import pytest

from numalign.errors import StartError
from numalign.model.feature_gates import FeatureGates
from numalign.topology.options import (
    OptionGroups,
    TopologyOptions,
    kubelet_node_limit,
    parse_options,
    safe_node_limit,
)

CLOSEST = "prefer-closest-numa-nodes"
MAX = "max-allowable-numa-nodes"
ATOI = f'unable to convert policy option to integer "{MAX}": strconv.Atoi: parsing '


@pytest.mark.parametrize("text", ["1", "t", "T", "TRUE", "true", "True"])
def test_true(text: str) -> None:
    assert parse_options({CLOSEST: text}, FeatureGates()).prefer_closest_numa_nodes is True


@pytest.mark.parametrize("text", ["0", "f", "F", "FALSE", "false", "False"])
def test_false(text: str) -> None:
    assert parse_options({CLOSEST: text}, FeatureGates()).prefer_closest_numa_nodes is False


def test_defaults() -> None:
    assert parse_options({}, FeatureGates()) == TopologyOptions()


@pytest.mark.parametrize(
    ("text", "number"),
    [
        pytest.param("8", 8, id="least"),
        pytest.param("+16", 16, id="sign"),
        pytest.param("0064", 64, id="leading-zeros"),
        pytest.param("9223372036854775807", 2**63 - 1, id="greatest"),
    ],
)
def test_max_allowable(text: str, number: int) -> None:
    options = parse_options({MAX: text}, FeatureGates())

    assert options.max_allowable_numa_nodes == number


@pytest.mark.parametrize(
    ("options", "message"),
    [
        pytest.param(
            {"prefer-farthest": "true"},
            'unknown Topology Manager Policy option: "prefer-farthest"',
            id="unknown",
        ),
        pytest.param(
            {CLOSEST: "yes please"},
            f'bad value for option "{CLOSEST}": '
            'strconv.ParseBool: parsing "yes please": invalid syntax',
            id="bool",
        ),
        pytest.param({MAX: "ten"}, ATOI + '"ten": invalid syntax', id="not-a-number"),
        pytest.param({MAX: ""}, ATOI + '"": invalid syntax', id="empty"),
        pytest.param({MAX: "1_0"}, ATOI + '"1_0": invalid syntax', id="underscore"),
        pytest.param({MAX: "10\n"}, ATOI + r'"10\n": invalid syntax', id="newline"),
        pytest.param(
            {MAX: "\u0661\u0660"}, ATOI + '"\u0661\u0660": invalid syntax', id="other-digits"
        ),
        pytest.param(
            {MAX: "9223372036854775808"},
            ATOI + '"9223372036854775808": value out of range',
            id="out-of-range",
        ),
        pytest.param(
            {MAX: "7"}, f'the minimum value of "{MAX}" should not be less than 8', id="too-small"
        ),
        pytest.param(
            {CLOSEST: "maybe", MAX: "ten"},
            f'bad value for option "{CLOSEST}": strconv.ParseBool: parsing "maybe": invalid syntax',
            id="first-mistake",
        ),
    ],
)
def test_mistakes(options: dict[str, str], message: str) -> None:
    with pytest.raises(StartError) as caught:
        parse_options(options, FeatureGates())

    assert (caught.value.stage, str(caught.value)) == ("topology_manager", message)


GROUPS = OptionGroups(alpha=frozenset({"young"}), beta=frozenset({"older"}))


@pytest.mark.parametrize(
    ("name", "level"),
    [pytest.param("young", "alpha", id="alpha"), pytest.param("older", "beta", id="beta")],
)
def test_gated_option(name: str, level: str) -> None:
    off = FeatureGates(
        topology_manager_policy_alpha_options=False, topology_manager_policy_beta_options=False
    )
    on = FeatureGates(
        topology_manager_policy_alpha_options=True, topology_manager_policy_beta_options=True
    )

    with pytest.raises(StartError) as caught:
        parse_options({name: ""}, off, GROUPS)

    assert str(caught.value) == (
        f'topology manager policy {level}-level options not enabled, but option "{name}" provided'
    )
    assert parse_options({name: ""}, on, GROUPS) == TopologyOptions()


@pytest.mark.parametrize(
    ("given", "kubelet", "safe"),
    [pytest.param(None, 8, 64, id="not-given"), pytest.param(12, 12, 12, id="given")],
)
def test_node_limits(given: int | None, kubelet: int, safe: int) -> None:
    assert (kubelet_node_limit(given), safe_node_limit(given)) == (kubelet, safe)
