"""The `numalign` command: its sub-commands by name, each imported when it is run."""

from __future__ import annotations

import os

import click

from numalign.cli.lazy_group import LazyGroup
from numalign.cli.options import examples, output_option

_COMMANDS = "numalign.cli.commands"

_LAZY = {
    "serve": (f"{_COMMANDS}.serve:serve", "Run the services, all of them or one."),
    "admit": (f"{_COMMANDS}.admit:admit", "Ask whether pods may start, and what they get."),
    "release": (f"{_COMMANDS}.release:release", "Give back what pods hold."),
    "status": (f"{_COMMANDS}.status:status", "Show who is admitted and how the services stand."),
    "ready": (f"{_COMMANDS}.ready:ready", "Say whether a service is ready, as a probe asks."),
    "machine": (f"{_COMMANDS}.machine:machine", "Draw the NUMA map of the machine."),
    "providers": (f"{_COMMANDS}.providers:providers", "List the hint providers."),
    "import": (
        f"{_COMMANDS}.import_kubelet:import_",
        "Take over what a kubelet has on this node.",
    ),
    "explain": (f"{_COMMANDS}.explain:explain", "Explain the last decision on a pod."),
    "history": (f"{_COMMANDS}.history:history", "List what was decided of late."),
    "simulate": (f"{_COMMANDS}.simulate:simulate", "Say whether pods would fit; keep nothing."),
    "top": (f"{_COMMANDS}.top:top", "Watch the NUMA map live."),
    "report": (f"{_COMMANDS}.report:report", "Write a page about the node."),
    "snapshot": (f"{_COMMANDS}.snapshot:snapshot", "Write down the node for later."),
    "gather": (f"{_COMMANDS}.gather:gather", "Collect what support needs, without secrets."),
    "relay": (f"{_COMMANDS}.relay:relay", "Be a connection to a service, for --node."),
    "metrics": (f"{_COMMANDS}.metrics:metrics", "Say what there is to measure."),
    "config": (f"{_COMMANDS}.config:config", "Work with configuration files."),
    "replay": (f"{_COMMANDS}.replay:replay", "Hold recordings against the services."),
    "demo": (f"{_COMMANDS}.demo:demo", "Try it all on a made-up machine."),
    "completion": (f"{_COMMANDS}.completion:completion", "Print a shell completion script."),
}


class _Commands(LazyGroup):
    lazy = _LAZY
    others = "numalign.commands"


@click.group(
    epilog=examples(
        "numalign demo",
        "numalign serve all --config /etc/numalign/config.yaml",
        "numalign admit pod.yaml --dry-run",
        "numalign -o json status",
    ),
    cls=_Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(package_name="numalign", message="numalign %(version)s")
@output_option
def cli() -> None:
    """NUMA-aware pod admission for a Kubernetes node.

    Exit codes: 0 done (admitted), 1 error, 2 wrong usage, 3 rejected, 4 not yet.
    """


def main() -> None:
    """The entry point of the command."""
    # gRPC says on standard error what becomes of its connections. It reads this when it is
    # imported, which commands do later.
    os.environ.setdefault("GRPC_VERBOSITY", "ERROR")
    cli(prog_name="numalign")
