"""The explainer: what each level costs and holds, and that merges travel exactly."""

from __future__ import annotations

import asyncio

import pytest
from tests.unit.topology.explain_world import (
    GPU,
    Explained,
    Node,
    Notes,
    container,
    gpus,
    machine,
    pod,
)

from numalign.model.hint import NO_HINT, TopologyHint
from numalign.model.numa_mask import NumaMask
from numalign.model.pod import Pod
from numalign.provider.hint_messages import hint_from_message, hints_from_message
from numalign.topology.explainer import Explainer, add_merges
from numalign.topology.messages import merge_to_message
from numalign.topology.ports import ProviderAnswer
from numalign.topology.scope import MergeRecord, ScopeResult
from numalign.v1 import types_pb2 as pb

FITS = pod("p", container("a", cpu=2, gpu=1), container("b", cpu=1))
REFUSED = pod("p", container("a", cpu=2), container("b", cpu=4, gpu=2))


def asked(which: Pod, level: pb.ExplainLevel.ValueType) -> Explained:
    node = Node(machine(4, 4), "restricted", reserved="0", devices=[gpus(GPU, 1, 1)])
    return node.ask(which, level)


def record_of(message: pb.MergeRecord) -> MergeRecord:
    return MergeRecord(
        container=message.container or None,
        answers=tuple(
            ProviderAnswer(p.provider, hints_from_message(p.hints) if p.HasField("hints") else None)
            for p in message.providers
        ),
        best=hint_from_message(message.best),
        admitted=message.admitted,
    )


@pytest.mark.parametrize(
    ("which", "level", "facts_asked"),
    [
        pytest.param(FITS, pb.EXPLAIN_LEVEL_UNSPECIFIED, 0, id="admitted-unspecified"),
        pytest.param(FITS, pb.EXPLAIN_LEVEL_FULL, 0, id="admitted-full"),
        pytest.param(REFUSED, pb.EXPLAIN_LEVEL_NONE, 0, id="refused-none"),
        pytest.param(REFUSED, pb.EXPLAIN_LEVEL_SUMMARY, 1, id="refused-summary"),
        pytest.param(REFUSED, pb.EXPLAIN_LEVEL_FULL, 1, id="refused-full"),
    ],
)
def test_facts_are_asked_for_where_a_refusal_is_explained(
    which: Pod, level: pb.ExplainLevel.ValueType, facts_asked: int
) -> None:
    assert asked(which, level).notes.facts_asked == facts_asked


def test_no_explanation_unless_it_is_asked_for() -> None:
    assert asked(REFUSED, pb.EXPLAIN_LEVEL_NONE).explanation == pb.Explanation()


def test_a_summary_has_no_details() -> None:
    explanation = asked(REFUSED, pb.EXPLAIN_LEVEL_SUMMARY).explanation

    assert explanation.summary
    assert len(explanation.obstacles) == 1
    assert not explanation.merges
    assert not explanation.allocate_calls
    assert not explanation.plugin_calls


@pytest.mark.parametrize(
    "which", [pytest.param(FITS, id="admitted"), pytest.param(REFUSED, id="refused")]
)
def test_everything_that_was_asked_is_in_a_full_explanation(which: Pod) -> None:
    explained = asked(which, pb.EXPLAIN_LEVEL_FULL)

    assert tuple(map(record_of, explained.explanation.merges)) == explained.result.merges
    assert list(explained.explanation.allocate_calls) == explained.notes.allocate_calls
    assert list(explained.explanation.plugin_calls) == explained.notes.plugin_calls
    assert len(explained.explanation.merges) == 2
    assert explained.explanation.allocate_calls[0].container == "a"


@pytest.mark.parametrize(
    ("room", "kept"),
    [
        pytest.param(4, ["c0", "c1", "c2", "c3"], id="all"),
        pytest.param(2, ["c0", "c3"], id="some"),
        pytest.param(0, ["c3"], id="the-one-that-decided"),
    ],
)
def test_merges_that_are_too_long_for_an_answer_are_left_out_and_counted(
    monkeypatch: pytest.MonkeyPatch, room: int, kept: list[str]
) -> None:
    answers = (ProviderAnswer("cpu", {"cpu": (TopologyHint(NumaMask(1), True),)}),)
    merges = [
        MergeRecord(container=name, answers=answers, best=NO_HINT, admitted=True)
        for name in ("c0", "c1", "c2", "c3")
    ]
    room *= merge_to_message(merges[0]).ByteSize()
    monkeypatch.setattr("numalign.topology.explainer.MOST_MERGE_BYTES", room)
    message = pb.Explanation(summary="Admitted.")

    add_merges(message, merges)

    assert [merge.container for merge in message.merges] == kept
    shown = (
        f" (Of 4 merges the first {len(kept) - 1} and the last are shown: all of them would be too "
        "long for an answer.)"
    )
    assert message.summary == "Admitted." + (shown if len(kept) < len(merges) else "")


def test_a_pod_that_cannot_be_judged_has_the_fault_for_an_obstacle() -> None:
    node = Node(machine(4), "restricted", reserved="0")
    decider = node.decider
    explainer = Explainer(decider.policy, decider.numa, decider.scope.name)
    notes = Notes(node.engines, node.states)
    result = ScopeResult(
        admitted=False,
        reason="UnexpectedAdmissionError",
        message="it is broken",
        keeps_nothing=True,
    )

    explanation = asyncio.run(explainer(FITS, result, notes, pb.EXPLAIN_LEVEL_SUMMARY))

    assert [o.why for o in explanation.obstacles] == ["it is broken"]
    assert explanation.summary == (
        "Rejected (UnexpectedAdmissionError) by policy restricted in container scope, the pod: "
        "it is broken."
    )
    assert notes.facts_asked == 0


def test_the_choices_of_a_large_machine_are_cut_narrowest_first() -> None:
    node = Node(machine(*[2] * 8), "single-numa-node", reserved="0")
    for number in range(8):
        node.hold(f"h{number}", 1, number)

    explained = node.ask(pod("p", container(cpu=2)))

    (facts,) = explained.obstacle.facts
    widths = [NumaMask(choice.mask).bit_count() for choice in facts.choices]
    assert len(widths) == 64
    assert widths == sorted(widths)
    assert len(explained.explanation.merges[0].providers[1].hints.resources["cpu"].masks) > 64
