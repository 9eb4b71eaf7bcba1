"""What the recordings' READMEs exempt, and nothing else. Pure.

An excuse looks at one difference and says why it does not count, or None. Separate from the
comparison so that what is forgiven can be listed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from numalign.replay.compare import Difference
from numalign.replay.recordings import Json
from numalign.replay.report import Excused

Excuse: TypeAlias = Callable[[Difference], str | None]
"""Why a difference does not count, or None where it does."""

NONDETERMINISTIC = "the recording marks this as nondeterministic"
ARBITRARY_ORDER = "one device resource of the container failed, and their order is arbitrary"
EXCHANGEABLE = "the recording marks devices with the same NUMA nodes as exchangeable"
OVERFLOW = "the recorded number wrapped around"
DECODER = "the text is that of a JSON decoder"

PARSER = "the text is that of a parser below the kubelet"

PARSER_TEXTS = ("strconv.", "time:", "quantities must")
"""How the texts begin that come from parsers below the kubelet (the admission README)."""

DECODER_TEXTS = ("json:", "invalid character", "unexpected end of JSON", "illegal base64")
"""How the texts begin that differ between versions of a JSON decoder (the unit README)."""

NOT_DECODABLE = "not decodable"
"""What a runner answers where it refuses a file that it cannot decode."""

_WRAPPED = (".value", ".milli_value", ".canonical", ".whole_cpus")
"""What is recorded of a quantity that comes from its value or its milli value."""


def sort_out(
    found: Iterable[Difference], excuse: Excuse
) -> tuple[tuple[Difference, ...], tuple[Excused, ...]]:
    """Differences that count, and those that are excused with the reason."""
    failures, excused = [], []
    for difference in found:
        why = excuse(difference)
        if why is None:
            failures.append(difference)
        else:
            excused.append(Excused(difference, why))
    return tuple(failures), tuple(excused)


def nothing(difference: Difference) -> str | None:  # noqa: ARG001 - an Excuse
    """Nothing is left open."""
    return None


def quantity_overflow(record: Json) -> Excuse:
    """Numbers of the category `overflow`, which is recorded as of no practical use."""
    if record["category"] != "overflow":
        return nothing
    return lambda difference: OVERFLOW if difference.path in _WRAPPED else None


def decoder_text(difference: Difference) -> str | None:
    """A refusal over what cannot be decoded, whatever the decoder says about it."""
    if difference.path != ".error" or difference.replayed != NOT_DECODABLE:
        return None
    reason = str(difference.recorded).removeprefix("could not restore state from checkpoint: ")
    return DECODER if reason.startswith(DECODER_TEXTS) else None


def parser_text(difference: Difference) -> str | None:
    """A refusal over a value that a parser below the kubelet refuses, however it is worded."""
    recorded, replayed = difference.recorded, difference.replayed
    if difference.path != ".error" or not isinstance(replayed, str):
        return None
    return PARSER if str(recorded).startswith(PARSER_TEXTS) else None


@dataclass(frozen=True, slots=True)
class ScenarioExcuse:
    """What one scenario leaves open.

    `open_paths` are places that may differ, with everything below them; `order_paths` those
    that the order between the device resources of a container decides. `alike` maps each
    device id to what has to agree where ids are exchangeable; it is empty where they are not.
    """

    open_paths: tuple[str, ...]
    order_paths: tuple[str, ...]
    alike: Mapping[str, object]

    def __call__(self, difference: Difference) -> str | None:
        """Why the difference does not count, or None."""
        if _is_below(difference.path, self.open_paths):
            return NONDETERMINISTIC
        if _is_below(difference.path, self.order_paths):
            return ARBITRARY_ORDER
        recorded, replayed = difference.recorded, difference.replayed
        if not isinstance(recorded, list) or not isinstance(replayed, list):
            return None
        if len(recorded) != len(replayed):
            return None
        left, right = self._kinds(recorded), self._kinds(replayed)
        if left == right:
            return EXCHANGEABLE if self.alike else None
        # Ids are listed in order, so an open position of a list does not name a device: as
        # many members may differ as positions are open.
        places = (f"{difference.path}[{i}]" for i in range(len(recorded)))
        may_differ = sum(_is_below(place, self.open_paths) for place in places)
        return NONDETERMINISTIC if (left - right).total() <= may_differ else None

    def _kinds(self, ids: list[object]) -> Counter[object]:
        return Counter(self.alike.get(i, i) if isinstance(i, str) else repr(i) for i in ids)


def scenario_excuse(scenario: Json) -> ScenarioExcuse:
    """What the scenario's `nondeterministic_fields` leave open."""
    marked: Json = scenario.get("nondeterministic_fields") or {}
    return ScenarioExcuse(
        open_paths=tuple(marked.get("paths") or ()),
        order_paths=tuple(_order_paths(scenario)),
        alike=_numa_lists(scenario) if marked.get("device_ids") else {},
    )


def _numa_lists(scenario: Json) -> dict[str, object]:
    """Each device id with its resource and every NUMA list it was ever reported with."""
    seen: dict[tuple[str, str], list[object]] = {}
    nodes = [scenario["node"], *(s.get("node_override") or {} for s in scenario["steps"])]
    lists = [d for node in nodes for d in node.get("devices") or ()]
    lists += [step for step in scenario["steps"] if step["op"] == "device_list"]
    for listed in lists:
        for device in listed["devices"]:
            numa = device["numa_nodes"]
            topologies = seen.setdefault((listed["resource"], device["id"]), [])
            topology = None if numa is None else tuple(numa)
            if topology not in topologies:
                topologies.append(topology)
    return {
        device: (resource, tuple(topologies)) for (resource, device), topologies in seen.items()
    }


def _is_below(path: str, places: tuple[str, ...]) -> bool:
    return any(
        path == place or (path.startswith(place) and path[len(place)] in ".[") for place in places
    )


def _order_paths(scenario: Json) -> Iterator[str]:
    """Places that depend on the order in which a kubelet walks a container's resources.

    Where one of several device resources failed, others may have been allocated before it or
    not; what they left stays until the next admission cleans up.
    """
    left: list[str] = []
    for index, step in enumerate(scenario["steps"]):
        path = f".steps[{index}]"
        if step["op"] == "admit":
            left = []
            yield from (place.format(path) for place in _failed(step, step["pod"], left))
        yield from (place.format(path) for place in left)


def _failed(entry: Json, pod: Json, left: list[str]) -> Iterator[str]:
    uid = pod["metadata"]["uid"]
    spec = pod["spec"]
    containers = {c["name"]: c for c in (*spec.get("initContainers", ()), *spec["containers"])}
    for number, call in enumerate(entry["allocate_calls"]):
        if call["provider"] != "device" or call["error"] is None or call["container"] is None:
            continue
        limits = containers[call["container"]].get("resources", {}).get("limits", {})
        devices = [name for name in limits if "/" in name]
        if len(devices) < 2:
            continue
        yield "{}.plugin_calls"
        yield f"{{}}.allocate_calls[{number}].error"
        yield "{}.expect.message"
        yield f"{{}}.expect.containers.{call['container']}.devices"
        left += [f"{{}}.expect.pod_devices.{uid}"]
        left += [f"{{}}.expect.device_allocated.{name}" for name in devices]
