"""Commands of the documents that tests do not type, each with the reason and what is done instead.

A key is the beginning of a line. Every other line is typed by tests/docs/test_commands.py.
"""

from __future__ import annotations

NOT_RUN = {
    ". .venv/bin/activate": "the programs are taken out of that environment",
    "make ": "targets take long; each has to be there (test_targets)",
    "pip install": "needs a package index; extras have to be there (test_extras), and "
    "tests/packaging installs the wheel",
    "kubectl ": "needs a cluster; tests/deploy/test_documented_kubectl.py has the real one read it",
    "helm ": "needs a cluster; tests/deploy/test_documented_kubectl.py has the real one render it",
    "go ": "needs the module proxy; tests/e2e/golang.py builds from Debian's packages",
    "docker buildx ": "needs a registry of images",
    "skopeo ": "needs a registry of images",
    "cd clients/examples/go-agent": "belongs to the next one",
    "PATH=$PATH:$(go env GOPATH)": "needs Go; tests/e2e/golang.py does it with Debian's",
    "./go-agent": "has to be built; tests/e2e/test_go_agent.py runs it",
    "numalign import": "reads what this machine's kubelet left; tests/unit/process/importing",
    "numalign-agent node": "needs an API server; tests/integration/test_node_and_scheduler.py",
    "numalign-agent nri": "joins this machine's container runtime; tests/e2e/test_nri.py",
}
"""On every page."""

ELSEWHERE = {
    "docs/cli.md": "tests/integration/test_documented_commands.py",
    "docs/writing-a-hint-provider.md": "tests/integration/test_provider_examples.py",
}
"""Pages whose commands have a test of their own."""
