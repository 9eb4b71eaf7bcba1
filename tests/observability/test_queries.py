"""Dashboards and rules ask for what there is: names of metrics and labels are the code's."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import yaml
from tests.observability.queries import (
    ADDED_LABELS,
    DASHBOARD,
    DEPLOYED,
    RULE_TESTS,
    dashboard_queries,
    identifiers,
    rules,
    series,
)

from numalign_agent.node.metrics import NODE

DOCS = Path(__file__).parents[2] / "docs"

QUERIES = [
    *dashboard_queries(),
    *((rule.get("record") or rule["alert"], rule["expr"]) for rule in rules()),
]


@pytest.mark.parametrize(("title", "query"), QUERIES, ids=[title for title, _ in QUERIES])
def test_a_query_asks_for_metrics_and_labels_that_there_are(title: str, query: str) -> None:
    known = series()
    names, labels = identifiers(query)
    assert names, query
    assert names <= known.keys(), names - known.keys()
    assert labels <= ADDED_LABELS.union(*(known[name] for name in names))


def test_a_wrong_name_or_label_would_be_found() -> None:
    names, labels = identifiers('sum by (le, colour) (rate(no_such_total{shade="x"}[5m]))')
    assert names == {"no_such_total"}
    assert labels == {"le", "colour", "shade"}


def test_every_alert_is_tested_and_says_what_to_do() -> None:
    tested = {
        alert["alertname"]
        for test in yaml.safe_load(RULE_TESTS.read_text())["tests"]
        for alert in test["alert_rule_test"]
        if alert["exp_alerts"]
    }
    alerts = {rule["alert"]: rule for rule in rules() if "alert" in rule}
    assert tested == alerts.keys()
    for rule in alerts.values():
        assert rule["labels"]["severity"] in {"critical", "warning", "info"}
        assert rule["annotations"].keys() == {"summary", "description"}


def test_every_alert_is_in_the_documents() -> None:
    page = (DOCS / "observability.md").read_text(encoding="utf-8")
    described = re.findall(r"^\| `(Numalign\w+)` \|", page, re.MULTILINE)

    assert sorted(described) == sorted(rule["alert"] for rule in rules() if "alert" in rule)


def test_all_that_is_counted_of_what_the_cluster_is_told_is_on_the_dashboard() -> None:
    shown = {name for _, query in dashboard_queries() for name in identifiers(query)[0]}

    assert shown >= {spec.name for spec in NODE}


def test_panels_have_ids_of_their_own_and_do_not_overlap() -> None:
    panels = json.loads(DASHBOARD.read_text())["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    taken: set[tuple[int, int]] = set()
    for panel in panels:
        at = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(at["x"], at["x"] + at["w"])
            for y in range(at["y"], at["y"] + at["h"])
        }
        assert not cells & taken, panel["title"]
        assert at["x"] + at["w"] <= 24
        taken |= cells


def test_the_collector_takes_what_numalign_sends_and_passes_all_of_it_on() -> None:
    config = yaml.safe_load((DEPLOYED / "otel-collector.yaml").read_text())
    pipelines = config["service"]["pipelines"]
    assert pipelines["traces"]["receivers"] == ["otlp"]
    assert "grpc" in config["receivers"]["otlp"]["protocols"]
    for pipeline in pipelines.values():
        for kind in ("receivers", "processors", "exporters"):
            assert set(pipeline[kind]) <= config[kind].keys()
    assert set(config["service"]["extensions"]) <= config["extensions"].keys()


def test_nothing_is_loaded_from_outside() -> None:
    for path in DEPLOYED.rglob("*.*"):
        assert not re.search(r"https?://(?!127\.0\.0\.1)", path.read_text()), path
