"""Comparing a replay under `compatibility: safe` with a recording of the kubelet. Pure.

There the kubelet's lifecycle faults are not reproduced, so less of a recording binds: the
verdict on every pod, the hints of every pod that is decided on, what every admitted pod was
given, and the books as far as they speak of pods that are admitted. A pod that was refused or
ended is taken out of the recorded books, where it stays until the next clean-up.
"""

from __future__ import annotations

from collections.abc import Iterator

from numalign.replay.compare import Difference, differences
from numalign.replay.recordings import Json
from numalign.replay.settled import PodParts, settled

_GIVEN = ("admitted", "containers", "pod_cpus", "pod_memory_blocks")
_REFUSED = ("admitted", "reason", "message")


def safe_differences(scenario: Json, recorded: Json, replayed: Json) -> Iterator[Difference]:
    """Every difference that counts; the results are those of `expected` and of a history."""
    recorded_steps, replayed_steps = recorded.get("steps", []), replayed.get("steps", [])
    before = {key: value for key, value in recorded.items() if key != "steps"}
    yield from differences(before, {k: v for k, v in replayed.items() if k != "steps"})
    comparison = _Comparison()
    for index, (step, left, right) in enumerate(
        zip(scenario["steps"], recorded_steps, replayed_steps, strict=False)
    ):
        yield from comparison.step(f".steps[{index}]", step, left, right)
    if len(recorded_steps) != len(replayed_steps):
        yield Difference(".steps", len(recorded_steps), len(replayed_steps))


class _Comparison:
    """One scenario under way: who is admitted, there and here."""

    def __init__(self) -> None:
        self._recorded: set[str] = set()
        self._replayed: set[str] = set()
        self._parts_recorded = PodParts()
        self._parts_replayed = PodParts()

    def step(self, path: str, step: Json, left: Json, right: Json) -> Iterator[Difference]:
        """The differences of one step."""
        if "error" in right or "start_error" in left or "start_error" in right:
            ends = ("error", "start_error", "start_error_stage")
            yield from differences(
                {key: left[key] for key in ends if key in left},
                {key: right[key] for key in ends if key in right},
                path,
            )
            return
        match step["op"]:
            case "admit":
                yield from self._admission(path, step["pod"]["metadata"]["uid"], left, right)
                return
            case "remove":
                self._recorded.discard(step["pod_uid"])
                self._replayed.discard(step["pod_uid"])
            case "restart":
                yield from self._readmissions(f"{path}.readmit", left["readmit"], right["readmit"])
        if "expect" in left and "expect" in right:
            yield from self._state(f"{path}.expect", left["expect"], right["expect"])

    def _readmissions(
        self, path: str, left: list[Json], right: list[Json]
    ) -> Iterator[Difference]:
        for index, (there, here) in enumerate(zip(left, right, strict=True)):
            uid = there["pod_uid"]
            yield from self._admission(f"{path}[{index}]", uid, there, here, again=True)

    def _admission(
        self, path: str, uid: str, left: Json, right: Json, *, again: bool = False
    ) -> Iterator[Difference]:
        there, here = left["expect"], right["expect"]
        self._note(self._recorded, self._parts_recorded, uid, there)
        self._note(self._replayed, self._parts_replayed, uid, here)
        if "default_cpus" not in there or "default_cpus" not in here:
            yield from differences(there, here, f"{path}.expect")
            return
        admitted = there["admitted"] and here["admitted"]
        if not again:
            yield from differences(left["hints"], right["hints"], f"{path}.hints")
        if admitted and not again:
            yield from differences(
                _any_order(left["plugin_calls"]),
                _any_order(right["plugin_calls"]),
                f"{path}.plugin_calls",
            )
        keys = _GIVEN if admitted else _REFUSED
        yield from differences(
            {key: there[key] for key in keys if key in there},
            {key: here[key] for key in keys if key in here},
            f"{path}.expect",
        )
        yield from self._state(f"{path}.expect", there, here)

    @staticmethod
    def _note(active: set[str], parts: PodParts, uid: str, expect: Json) -> None:
        if expect["admitted"]:
            active.add(uid)
        else:
            active.discard(uid)
        parts.note(uid, expect)

    def _state(self, path: str, left: Json, right: Json) -> Iterator[Difference]:
        both = self._recorded & self._replayed
        yield from differences(
            *settled((left, self._parts_recorded), (right, self._parts_replayed), both), path
        )


def _any_order(calls: list[Json]) -> list[Json]:
    """Plugin calls in an order of their own: plugins are told at another time here."""
    return sorted(calls, key=lambda call: (call["container"], call["resource"], call["call"]))
