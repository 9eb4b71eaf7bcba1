"""The queries of the dashboard and of the rules, and the names that they may use."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from numalign.telemetry.metrics import Kind, MetricSpec
from numalign.telemetry.own_metrics import all_metrics
from numalign_agent.metrics import AGENT
from numalign_agent.node.metrics import NODE
from numalign_agent.nri.metrics import NRI

DEPLOYED = Path(__file__).parents[2] / "deploy" / "observability"
RULES = DEPLOYED / "rules" / "numalign.rules.yaml"
RULE_TESTS = DEPLOYED / "rules" / "numalign.tests.yaml"
DASHBOARD = DEPLOYED / "grafana-dashboard.json"

FUNCTIONS = {"by", "and", "sum", "rate", "increase", "histogram_quantile", "label_values", "time"}
ADDED_LABELS = {"instance", "job", "le"}
"""Labels that scraping and histograms add."""


def specs() -> tuple[MetricSpec, ...]:
    """Every metric of the services and of the agent."""
    return (*all_metrics(), *AGENT, *NRI, *NODE)


def series() -> dict[str, frozenset[str]]:
    """Names of series with their labels, `up` and what the rules record included."""
    found = {"up": frozenset[str]()}
    for spec in specs():
        labels = frozenset(spec.labels)
        if spec.kind is Kind.HISTOGRAM:
            found |= {f"{spec.name}_{end}": labels for end in ("bucket", "sum", "count")}
        else:
            found[spec.name] = labels
    for rule in rules():
        if "record" in rule:
            by = re.search(r"by \(([^)]*)\)", rule["expr"])
            labels = frozenset(by[1].replace(" ", "").split(",")) if by else frozenset[str]()
            found[rule["record"]] = labels
    return found


def rules() -> list[dict[str, Any]]:
    """Every rule."""
    document = yaml.safe_load(RULES.read_text(encoding="utf-8"))
    return [rule for group in document["groups"] for rule in group["rules"]]


def dashboard_queries() -> Iterator[tuple[str, str]]:
    """Title of the panel, and query; variables stand for anything."""
    board = json.loads(DASHBOARD.read_text(encoding="utf-8"))
    for panel in board["panels"]:
        for target in panel.get("targets", ()):
            yield panel["title"], target["expr"].replace("$instance", ".*")
    for variable in board["templating"]["list"]:
        if variable["type"] == "query":
            yield variable["name"], variable["query"]["query"]


def identifiers(query: str) -> tuple[set[str], set[str]]:
    """The names of series in a query, and of labels."""
    without_text = re.sub(r'"[^"]*"', '""', query)
    labels = set(re.findall(r"(\w+)\s*(?:=~|!=|!~|=(?!=))", without_text))
    for listed in re.findall(r"by \(([^)]*)\)", without_text):
        labels |= {name.strip() for name in listed.split(",")}
    labels |= set(re.findall(r"label_values\([^,]*, (\w+)\)", without_text))
    bare = re.sub(r"\{[^}]*\}|\[[^]]*\]|by \([^)]*\)|, \w+\)$", " ", without_text)
    names = set(re.findall(r"[A-Za-z_:][\w:]*", bare)) - FUNCTIONS
    return names, labels
