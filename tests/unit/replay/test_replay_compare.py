"""Differences, and what the READMEs exempt of them."""

from __future__ import annotations

from typing import Any

import pytest

from numalign.replay.compare import MISSING, Difference, differences
from numalign.replay.excuses import (
    ARBITRARY_ORDER,
    DECODER,
    EXCHANGEABLE,
    NONDETERMINISTIC,
    NOT_DECODABLE,
    OVERFLOW,
    ScenarioExcuse,
    decoder_text,
    quantity_overflow,
    scenario_excuse,
)


@pytest.mark.parametrize(
    ("recorded", "replayed", "found"),
    [
        pytest.param({"a": 1}, {"a": 1}, [], id="same"),
        pytest.param({"a": {"b": 1}}, {"a": {"b": 2}}, [(".a.b", 1, 2)], id="leaf"),
        pytest.param({"a": 1}, {}, [(".a", 1, MISSING)], id="not-replayed"),
        pytest.param({}, {"a": None}, [(".a", MISSING, None)], id="not-recorded"),
        pytest.param(None, {}, [("", None, {})], id="null-is-not-empty"),
        pytest.param([{"a": 1}], [{"a": 2}], [("[0].a", 1, 2)], id="item"),
        pytest.param([{}], [], [("", [{}], [])], id="length"),
        pytest.param(["a", "b"], ["a", "c"], [("", ["a", "b"], ["a", "c"])], id="ids"),
        pytest.param([], None, [("", [], None)], id="empty-is-not-null"),
    ],
)
def test_differences(recorded: object, replayed: object, found: list[Any]) -> None:
    assert list(differences(recorded, replayed)) == [Difference(*place) for place in found]


EXCUSE = ScenarioExcuse(
    open_paths=(".steps[1].plugin_calls", ".steps[2].expect.ids[0]"),
    order_paths=(".steps[3].expect.message",),
    alike={"g0": ("gpu", (0,)), "g1": ("gpu", (0,)), "g2": ("gpu", (1,))},
)


@pytest.mark.parametrize(
    ("difference", "why"),
    [
        pytest.param(
            Difference(".steps[1].plugin_calls[0].size", 1, 2), NONDETERMINISTIC, id="below"
        ),
        pytest.param(Difference(".steps[1].plugin_callsX", 1, 2), None, id="prefix-of-a-name"),
        pytest.param(Difference(".steps[11].plugin_calls", 1, 2), None, id="another-step"),
        pytest.param(Difference(".steps[3].expect.message", 1, 2), ARBITRARY_ORDER, id="order"),
        pytest.param(Difference(".x", ["g0"], ["g1"]), EXCHANGEABLE, id="alike"),
        pytest.param(Difference(".x", ["g0"], ["g2"]), None, id="unlike"),
        pytest.param(Difference(".x", ["g0"], ["g0", "g1"]), None, id="other-number"),
        pytest.param(
            Difference(".steps[2].expect.ids", ["g0", "g2"], ["g2", "g2"]),
            NONDETERMINISTIC,
            id="one-open-position",
        ),
        pytest.param(
            Difference(".steps[2].expect.ids", ["g0", "g0"], ["g2", "g2"]),
            None,
            id="more-than-open",
        ),
    ],
)
def test_what_a_scenario_leaves_open(difference: Difference, why: str | None) -> None:
    assert EXCUSE(difference) == why


def test_lists_in_another_order_are_not_excused_where_ids_count() -> None:
    excuse = ScenarioExcuse(open_paths=(), order_paths=(), alike={})

    assert excuse(Difference(".x", ["a", "b"], ["b", "a"])) is None


def test_order_of_device_resources_counts_only_where_one_failed() -> None:
    limits = {"x.y/a": "1", "x.y/b": "1", "cpu": "1"}
    pod = {
        "metadata": {"uid": "u"},
        "spec": {"containers": [{"name": "c", "resources": {"limits": limits}}]},
    }

    def excuse(error: str | None) -> ScenarioExcuse:
        call = {"provider": "device", "container": "c", "error": error}
        step = {"op": "admit", "pod": pod, "allocate_calls": [call]}
        return scenario_excuse({"node": {"devices": []}, "steps": [step, {"op": "start"}]})

    left = Difference(".steps[1].expect.pod_devices.u.c", MISSING, {"x.y/a": ["d"]})
    cpus = Difference(".steps[0].expect.default_cpus", "0", "1")
    assert excuse("no devices")(left) == ARBITRARY_ORDER
    assert excuse(None)(left) is None
    assert excuse("no devices")(cpus) is None


def test_overflow_and_decoder_texts() -> None:
    wrapped = Difference(".value", 0, 2**64)
    decoder = Difference(".error", "json: cannot unmarshal", NOT_DECODABLE)

    assert quantity_overflow({"category": "overflow"})(wrapped) == OVERFLOW
    assert quantity_overflow({"category": "overflow"})(Difference(".sign", 1, -1)) is None
    assert quantity_overflow({"category": "valid"})(wrapped) is None
    assert decoder_text(decoder) == DECODER
    assert decoder_text(Difference(".error", "checkpoint is corrupted", NOT_DECODABLE)) is None
    assert decoder_text(Difference(".error", "json: cannot unmarshal", "accepted")) is None
