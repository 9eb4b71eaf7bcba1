"""A served node, looked at by a real Prometheus and a receiver of spans at once."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.integration.served_node import ServedNode, container, pod
from tests.observability.prometheus import eventually, free_port, program, prometheus
from tests.observability.queries import RULE_TESTS, RULES, dashboard_queries
from tests.unit.telemetry.otlp import Receiver, attributes

from numalign.v1 import types_pb2 as pb

pytestmark = pytest.mark.e2e


def promtool(*arguments: object) -> None:
    """Run it; what it finds wrong is the failure."""
    done = subprocess.run(
        [program("promtool"), *map(str, arguments)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_rules_do_what_their_tests_say() -> None:
    promtool("check", "rules", RULES)
    promtool("test", "rules", RULE_TESTS)


def test_the_queries_of_the_dashboard_are_queries(tmp_path: Path) -> None:
    queries = [query for _, query in dashboard_queries() if not query.startswith("label_values")]
    records = [{"record": f"a:b{i}", "expr": query} for i, query in enumerate(queries)]
    file = tmp_path / "rules.yaml"
    file.write_text(yaml.safe_dump({"groups": [{"name": "dashboard", "rules": records}]}))
    promtool("check", "rules", "--lint=none", file)


def test_metrics_traces_logs_and_alerts_of_one_node(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program("prometheus")
    target = f"127.0.0.1:{free_port()}"
    with Receiver() as receiver:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", receiver.endpoint)
        monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "100")
        node = ServedNode(tmp_path, {"metrics": {"address": target}, "secondOwner": "tolerate"})
        node.start("all")
        try:
            with prometheus(tmp_path / "prometheus", target) as watching:
                # What is counted before it is looked at for the first time is no increase.
                eventually(lambda: watching.value("up") == 1)
                fits = pod("fits", {"containers": [container("c", cpu="2", memory="1Gi")]})
                refused = pod("big", {"containers": [container("c", cpu="64", memory="1Gi")]})
                assert node.admit(fits).verdict == pb.VERDICT_ADMITTED
                assert node.admit(refused).verdict == pb.VERDICT_REJECTED
                check_metrics(watching)
                traces = check_exemplars(watching)
        finally:
            node.stop()
        check_spans(receiver, traces)
        check_logs((tmp_path / "all.log").read_text(), receiver)


def check_metrics(watching: Any) -> None:
    def admissions(verdict: str) -> float | None:
        value: float | None = watching.value(
            f'sum(numalign_admissions_total{{verdict="{verdict}"}})'
        )
        return value

    eventually(lambda: admissions("rejected") == 1)
    assert admissions("admitted") == 1
    assert watching.value("sum(kubelet_admission_rejections_total)") == 1
    assert watching.value("min(numalign_provider_up)") == 1
    assert watching.value("count(numalign_provider_up)") >= 3
    # Two of sixteen CPUs are exclusive; two are reserved and no part of the pool.
    assert eventually(lambda: watching.value("numalign:exclusive_cpus:ratio")) == 2 / 14
    groups = watching.get("rules")["groups"]
    rules = [rule for group in groups for rule in group["rules"]]
    assert {rule["health"] for rule in rules} <= {"ok", "unknown"}
    assert not [r["name"] for r in rules if r.get("state") == "firing"]


def check_exemplars(watching: Any) -> set[str]:
    """Ids of the traces that the histogram of admissions leads to."""
    query = "numalign_admission_duration_seconds_bucket"

    def found() -> set[str]:
        answer = watching.get("query_exemplars", query=query, start="0", end="99999999999")
        return {e["labels"]["trace_id"] for series in answer for e in series["exemplars"]}

    return eventually(found)


def check_spans(receiver: Receiver, traces: set[str]) -> None:
    admits = [s for s in receiver.spans() if s.name == "numalign.v1.TopologyManager/Admit"]
    assert traces <= {span.trace_id.hex() for span in admits}
    verdicts = {attributes(span).get("numalign.verdict") for span in admits}
    assert {"admitted", "rejected"} <= verdicts


def check_logs(text: str, receiver: Receiver) -> None:
    lines = [json.loads(line) for line in text.splitlines() if line.startswith("{")]
    told = {line["event"]: line for line in lines if line["event"].startswith("pod ")}
    assert {"pod admitted", "pod rejected"} <= told.keys()
    spans = {span.trace_id.hex() for span in receiver.spans()}
    assert told["pod rejected"]["trace_id"] in spans
