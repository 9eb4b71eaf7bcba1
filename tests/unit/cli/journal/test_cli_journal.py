"""`numalign explain`, `numalign history` and `numalign metrics list`."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import grpc
import pytest
from tests.unit.cli.conftest import Run, Scripted

from numalign.cli.journal.moments import moment_of
from numalign.telemetry.own_metrics import all_metrics
from numalign.v1 import admission_pb2 as ad
from numalign.v1 import decisions_pb2 as dc
from numalign.v1 import types_pb2 as pb
from numalign_agent.metrics import AGENT
from numalign_agent.node.metrics import NODE
from numalign_agent.nri.metrics import NRI

LISTED = ad.ListAdmissionsResponse(
    admissions=[pb.AdmissionRecord(pod_uid="uid-1", namespace="default", name="web")]
)


def record() -> dc.DecisionRecord:
    found = dc.DecisionRecord(
        number=5,
        times=3,
        pod_uid="uid-9",
        namespace="ns",
        name="big",
        owner="kubelet",
        verdict=pb.VERDICT_REJECTED,
        reason="TopologyAffinityError",
        message="Resources cannot be allocated with Topology locality",
    )
    found.first_time.seconds = found.last_time.seconds = 1_700_000_000
    found.took.nanos = 2_500_000
    found.explanation.summary = "Rejected, uid-1 holds 4."
    found.explanation.obstacles.add(container="c", resources=["cpu"], why="cpu asked 10")
    merge = found.explanation.merges.add(container="c")
    merge.best.mask = 1
    return found


def test_explain_shows_the_decision_with_pods_by_name(scripted: Scripted, run: Run) -> None:
    service = scripted(
        "admission",
        GetDecision=dc.GetDecisionResponse(decision=record()),
        ListAdmissions=LISTED,
    )
    result = run("explain", "ns/big")
    assert result.exit_code == 0
    assert "ns/big  rejected  TopologyAffinityError" in result.output
    assert "Rejected, default/web holds 4." in result.output
    assert "decision 5 of 2023-11-1" in result.output
    assert "made 3 times until" in result.output
    assert "merge " not in result.output
    assert service.requests[0].pod == "ns/big"
    assert "merge " in run("explain", "ns/big", "--full").output


def test_explain_by_number_as_json(scripted: Scripted, run: Run) -> None:
    service = scripted(
        "admission",
        GetDecision=dc.GetDecisionResponse(decision=record()),
        ListAdmissions=LISTED,
    )
    document = json.loads(run("explain", "--number", "5", "-o", "json").stdout)
    assert (document["number"], document["explanation"]["merges"][0]["container"]) == ("5", "c")
    assert service.requests[0].number == 5


@pytest.mark.parametrize("arguments", [[], ["web", "--number", "3"]])
def test_explain_wants_one_decision(run: Run, arguments: list[str]) -> None:
    result = run("explain", *arguments)
    assert result.exit_code == 2
    assert "name either a pod or" in result.stderr


def test_an_unknown_pod_is_an_error_that_names_the_way_out(scripted: Scripted, run: Run) -> None:
    def unknown(request: Any, context: grpc.ServicerContext) -> Any:
        context.abort(grpc.StatusCode.NOT_FOUND, f'pod: no decision on "{request.pod}"')

    scripted("admission", GetDecision=unknown)
    result = run("explain", "nobody")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr == (
        'numalign: pod: no decision on "nobody"; `numalign history` lists what there is\n'
    )


@pytest.mark.parametrize(
    ("arguments", "lines"),
    [
        (["--verdict", "deferred"], []),
        (["--reason", "OutOfcpu"], ["reason OutOfcpu: none; there is TopologyAffinityError"]),
        (["--pod", "small"], ["pod small: none; there is ns/big"]),
        (["--owner", "me"], ["owner me: none; there is kubelet"]),
        (
            ["--pod", "big", "--reason", "A", "--reason", "TopologyAffinityError", "--reason", "B"],
            [
                "reason A: none; there is TopologyAffinityError",
                "reason B: none; there is TopologyAffinityError",
            ],
        ),
    ],
    ids=["nothing wrong", "reason", "pod", "owner", "several reasons"],
)
def test_a_filter_that_lets_nothing_through(
    scripted: Scripted, run: Run, arguments: list[str], lines: list[str]
) -> None:
    def listed(request: Any, _: grpc.ServicerContext) -> Any:
        found = dc.ListDecisionsResponse()
        if not request.HasField("filter"):
            found.decisions.append(record())
            found.kept_since.seconds = 1_700_000_000
        return found

    scripted("admission", ListDecisions=listed, ListAdmissions=LISTED)
    result = run("history", *arguments)

    assert result.exit_code == 0
    said = [line.rstrip() for line in result.stdout.splitlines()]
    assert said[0].startswith("no decisions like that: the journal has 1 decision and goes back ")
    assert said[1:] == lines


def test_an_empty_journal(scripted: Scripted, run: Run) -> None:
    empty = dc.ListDecisionsResponse()
    scripted("admission", ListDecisions=empty, ListAdmissions=LISTED)

    assert run("history").stdout.strip() == "no decisions: the journal is empty"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--since", "1m", "--until", "10m"], "is not before --until"),
        (["--since", "2999-01-01"], "--since 2999-01-01 00:00:00 is in the future"),
    ],
)
def test_a_time_that_cannot_be_meant(run: Run, arguments: list[str], said: str) -> None:
    result = run("history", *arguments)

    assert result.exit_code == 2
    assert said in result.stderr


def test_history_keeps_the_name_of_a_pod_on_one_line(scripted: Scripted, run: Run) -> None:
    one = record()
    one.name = "run-simulate-1048576"
    scripted(
        "admission",
        ListDecisions=dc.ListDecisionsResponse(decisions=[one]),
        ListAdmissions=ad.ListAdmissionsResponse(),
    )
    assert f"{one.namespace}/{one.name} " in run("history").stdout


@pytest.mark.parametrize("command", [["explain", "web"], ["history"]])
def test_no_service_is_named_with_the_way_out(run: Run, command: list[str]) -> None:
    result = run(*command)
    assert result.exit_code == 1
    assert "cannot reach the admission service" in result.stderr
    assert '"numalign serve"' in result.stderr


def test_history_asks_for_what_it_was_told(scripted: Scripted, run: Run) -> None:
    service = scripted(
        "admission",
        ListDecisions=dc.ListDecisionsResponse(decisions=[record()], left_out=2),
        ListAdmissions=LISTED,
    )
    arguments = ("--verdict", "rejected", "--verdict", "deferred", "--reason", "OutOfcpu")
    times = ("--since", "2026-01-31T08:00:00Z", "--until", "2026-01-31T10:00:00+01:00")
    result = run("history", *arguments, "--pod", "big", "--owner", "k", "-n", "7", *times)
    assert result.exit_code == 0
    asked = service.requests[0]
    assert list(asked.filter.verdicts) == [pb.VERDICT_REJECTED, pb.VERDICT_DEFERRED]
    assert (asked.filter.pod, asked.filter.owner, asked.limit) == ("big", "k", 7)
    assert asked.filter.until.seconds - asked.filter.since.seconds == 3600
    assert "ns/big" in result.output
    assert "cpu asked 10" in result.output
    assert "2 older ones are not shown" in result.output


@pytest.mark.parametrize("explanations", [False, True])
def test_history_as_json(scripted: Scripted, run: Run, explanations: bool) -> None:
    scripted(
        "admission",
        ListDecisions=dc.ListDecisionsResponse(decisions=[record()]),
        ListAdmissions=LISTED,
    )
    flags = ["--explanations"] if explanations else []
    (decision,) = json.loads(run("history", "-o", "json", *flags).stdout)["decisions"]
    assert decision["verdict"] == "VERDICT_REJECTED"
    assert ("explanation" in decision) is explanations


@pytest.mark.parametrize("value", ["yesterday", "10", "1e9h", "2026-13-01"])
def test_times_that_are_none(run: Run, value: str) -> None:
    result = run("history", "--since", value)
    assert result.exit_code == 2
    assert f'"{value}" is neither a duration' in result.stderr


NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        pytest.param("90s", NOW - timedelta(seconds=90), id="ago"),
        pytest.param("2026-01-30T12:00:00Z", NOW - timedelta(days=1), id="a-time"),
        pytest.param("2026-01-31T13:00:00+01:00", NOW, id="with-a-zone"),
        pytest.param("999999999999999h", None, id="before-time-began"),
    ],
)
def test_moments(text: str, moment: datetime | None) -> None:
    assert moment_of(text, NOW) == moment


def test_metrics_are_listed_from_the_code(run: Run) -> None:
    listed = json.loads(run("metrics", "list", "-o", "json").stdout)["metrics"]
    specs = {spec.name for spec in (*all_metrics(), *AGENT, *NRI, *NODE)}
    assert sorted(metric["name"] for metric in listed) == sorted(specs)
    assert all(metric["services"] for metric in listed)
    shown = run("metrics", "list").output
    assert all(name in shown for name in specs)
    memory = json.loads(run("metrics", "list", "--service", "memory", "-o", "json").stdout)
    assert all("memory" in metric["services"] for metric in memory["metrics"])
    plugin = json.loads(run("metrics", "list", "--service", "nri", "-o", "json").stdout)
    assert {metric["name"] for metric in plugin["metrics"]} == {spec.name for spec in NRI}
