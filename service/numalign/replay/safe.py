"""Comparing a replay under `compatibility: safe` with a recording of the kubelet. Pure.

There the kubelet's lifecycle faults are not reproduced, so less of a recording binds: the
verdict on every pod, the hints of every pod that is decided on, what every admitted pod was
given, and the books as far as they speak of pods that are admitted. A pod that was refused or
ended is taken out of the recorded books, where it stays until the next clean-up.

Where books differ for a cause, a later decision over them may differ for the same cause.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from numalign.replay.causes import JUDGED_AGAIN, BookPair, admission_cause, start_cause
from numalign.replay.compare import Cause, Difference, differences
from numalign.replay.device_lists import misplaced, with_list
from numalign.replay.expected import ENDS
from numalign.replay.recordings import Json
from numalign.replay.settled import PodParts, settled

_GIVEN = ("admitted", "containers", "pod_cpus", "pod_memory_blocks")
_REFUSED = ("admitted", "reason", "message")


def safe_differences(scenario: Json, recorded: Json, replayed: Json) -> Iterator[Difference]:
    """Every difference that counts, with its cause where it has one.

    The results are those of `expected` and of a history.
    """
    recorded_steps, replayed_steps = recorded.get("steps", []), replayed.get("steps", [])
    before = {key: value for key, value in recorded.items() if key != "steps"}
    yield from differences(before, {k: v for k, v in replayed.items() if k != "steps"})
    comparison = _Comparison(scenario)
    for index, (step, left, right) in enumerate(
        zip(scenario["steps"], recorded_steps, replayed_steps, strict=False)
    ):
        yield from comparison.step(f".steps[{index}]", step, left, right)
        if any(key in right for key in ENDS):
            return
    if len(recorded_steps) != len(replayed_steps):
        yield Difference(".steps", len(recorded_steps), len(replayed_steps))


class _Comparison:
    """One scenario under way: who is admitted there and here, and why books differ."""

    def __init__(self, scenario: Json) -> None:
        self._node: Json = scenario["node"]
        self._recorded: set[str] = set()
        self._replayed: set[str] = set()
        self._parts_recorded = PodParts()
        self._parts_replayed = PodParts()
        self._cause: Cause | None = None

    def step(self, path: str, step: Json, left: Json, right: Json) -> Iterator[Difference]:
        """The differences of one step."""
        if any(key in side for key in ENDS for side in (left, right)):
            yield from self._end(path, step, left, right)
            return
        match step["op"]:
            case "admit":
                yield from self._admission(path, step["pod"]["metadata"]["uid"], left, right)
                return
            case "device_list":
                self._node = with_list(self._node, step)
            case "remove":
                self._recorded.discard(step["pod_uid"])
                self._replayed.discard(step["pod_uid"])
            case "restart":
                self._node = {**self._node, **(step.get("node_override") or {})}
                for index, (there, here) in enumerate(
                    zip(left["readmit"], right["readmit"], strict=False)
                ):
                    place = f"{path}.readmit[{index}]"
                    yield from self._admission(place, there["pod_uid"], there, here)
        if "expect" in left and "expect" in right:
            yield from self._books(f"{path}.expect", left["expect"], right["expect"])

    def _end(self, path: str, step: Json, left: Json, right: Json) -> Iterator[Difference]:
        cause = start_cause(step)
        if step["op"] == "admit" and step["pod"]["metadata"]["uid"] in self._replayed:
            cause = JUDGED_AGAIN
        for difference in differences(
            {key: left[key] for key in ENDS if key in left},
            {key: right[key] for key in ENDS if key in right},
            path,
        ):
            yield replace(difference, cause=cause)

    def _admission(self, path: str, uid: str, left: Json, right: Json) -> Iterator[Difference]:
        there, here = left["expect"], right["expect"]
        kept = bool(right.get("kept", False))
        cause = JUDGED_AGAIN if kept else self._cause
        if not kept:
            cause = admission_cause(left, right, misplaced(self._node)) or cause
        self._note(self._recorded, self._parts_recorded, uid, there)
        self._note(self._replayed, self._parts_replayed, uid, here)
        if "default_cpus" not in there or "default_cpus" not in here:
            found = differences(there, here, f"{path}.expect")
        else:
            found = self._decision(path, left, right, kept=kept)
        for difference in found:
            yield replace(difference, cause=cause)
        if "default_cpus" in there and "default_cpus" in here:
            yield from self._books(f"{path}.expect", there, here, cause)

    @staticmethod
    def _decision(path: str, left: Json, right: Json, *, kept: bool) -> Iterator[Difference]:
        there, here = left["expect"], right["expect"]
        admitted = there["admitted"] and here["admitted"]
        if not kept:
            yield from differences(left["hints"], right["hints"], f"{path}.hints")
        if admitted and not kept:
            yield from differences(
                left["plugin_calls"],
                _in_order_of(left["plugin_calls"], right["plugin_calls"]),
                f"{path}.plugin_calls",
            )
        keys = _GIVEN if admitted else _REFUSED
        yield from differences(
            {key: there[key] for key in keys if key in there},
            {key: here[key] for key in keys if key in here},
            f"{path}.expect",
        )

    @staticmethod
    def _note(active: set[str], parts: PodParts, uid: str, expect: Json) -> None:
        if expect["admitted"]:
            active.add(uid)
        else:
            active.discard(uid)
        parts.note(uid, expect)

    def _books(
        self, path: str, left: Json, right: Json, cause: Cause | None = None
    ) -> Iterator[Difference]:
        """Differences of the books; what they show of their cause outlives the step."""
        both = self._recorded & self._replayed
        recorded, replayed = settled(
            (left, self._parts_recorded), (right, self._parts_replayed), both
        )
        books = BookPair(recorded, replayed, _all_cpus(self._node), self._parts_recorded)
        inherited, self._cause = cause or self._cause, None
        for difference in differences(recorded, replayed, path):
            why = books.cause(difference) or inherited
            self._cause = self._cause or why
            yield replace(difference, cause=why)


def _in_order_of(recorded: list[Json], replayed: list[Json]) -> list[Json]:
    """Replayed plugin calls in the recorded order: plugins are told at another time here."""
    left = list(replayed)
    ordered = []
    for call in recorded:
        same = next((c for c in left if _what(c) == _what(call)), None)
        if same is not None:
            left.remove(same)
            ordered.append(same)
    return ordered + left


def _what(call: Json) -> tuple[str, str, str]:
    return call["container"], call["resource"], call["call"]


def _all_cpus(node: Json) -> str:
    return ",".join(
        str(thread)
        for numa_node in node["machine"]["numa_nodes"]
        for core in numa_node["cores"]
        for thread in core["threads"]
    )
