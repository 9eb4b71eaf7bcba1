# ruff: noqa: INP001 - a script by itself
"""Writes the files of deploy/ that are made from others there; a test holds them together.

Kustomize builds no object around a file, and a chart reads no file outside of itself.
"""

from __future__ import annotations

from pathlib import Path

DEPLOY = Path(__file__).parents[1] / "deploy"
RULES = DEPLOY / "observability" / "rules" / "numalign.rules.yaml"
COLLECTOR = DEPLOY / "kustomize" / "overlays" / "collector" / "collector.yaml"
CHART_FILES = DEPLOY / "helm" / "numalign" / "files"
PROMETHEUS_RULE = DEPLOY / "kustomize" / "prometheus-operator" / "prometheus-rule.yaml"

_OBJECT = """\
# For the Prometheus operator: observability/rules/numalign.rules.yaml as an object. Change it
# there, and run `python tools/deploy_files.py`.
apiVersion: monitoring.coreos.com/v1
kind: PrometheusRule
metadata:
  name: numalign
  labels:
    app.kubernetes.io/name: numalign
spec:
"""


def made_files() -> dict[Path, str]:
    """What stands in each file that is made."""
    rules = RULES.read_text(encoding="utf-8")
    lines = rules.splitlines(keepends=True)
    below = "".join(f"  {line}" if line.strip() else line for line in lines)
    return {
        PROMETHEUS_RULE: _OBJECT + below,
        CHART_FILES / RULES.name: rules,
        CHART_FILES / COLLECTOR.name: COLLECTOR.read_text(encoding="utf-8"),
    }


def main() -> None:
    """Write them all."""
    for path, text in made_files().items():
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
