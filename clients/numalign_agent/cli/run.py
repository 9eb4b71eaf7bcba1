"""`numalign-agent run`: the agent itself, until a signal ends it."""

from __future__ import annotations

from pathlib import Path

import click

from numalign.cli.options import config_option, examples
from numalign_agent.config.loading import IN_AGENT


@click.command(
    epilog=examples(
        "numalign-agent run --config /etc/numalign/config.yaml",
        "numalign-agent run --static-pod-path /etc/kubernetes/manifests --runner recorder",
    )
)
@config_option
@click.option("--node-name", help="Name of this node; the host's name by default.")
@click.option(
    "--static-pod-path",
    type=click.Path(path_type=Path),
    help="Directory of manifests, or one manifest.",
)
@click.option("--static-pod-url", help="URL of one manifest or a list of them.")
@click.option(
    "--kubeconfig",
    type=click.Path(path_type=Path),
    help="Follow the pods of this API server, and report to it.",
)
@click.option("--own-node", is_flag=True, help="Keep the Node object and its lease, too.")
@click.option(
    "--admission",
    type=click.Path(path_type=Path),
    help="Socket of the Admission service, instead of the configured one.",
)
@click.option(
    "--state-directory",
    type=click.Path(path_type=Path),
    help="Directory of the journal and of containers, instead of the configured one.",
)
@click.option(
    "--runner",
    type=click.Choice(("process", "recorder")),
    help="What runs containers: processes of this node, or nothing but a record.",
)
@click.option("--address", metavar="HOST:PORT", help="Serve /metrics and /healthz here.")
def run(
    config: Path | None,
    node_name: str | None,
    static_pod_path: Path | None,
    static_pod_url: str | None,
    kubeconfig: Path | None,
    own_node: bool,
    admission: Path | None,
    state_directory: Path | None,
    runner: str | None,
    address: str | None,
) -> None:
    """Run the agent.

    It learns which pods this node should run, has each judged by Admission, and runs those that
    are admitted. SIGTERM stops the agent and leaves containers running; the next agent finds
    them again. A flag wins over the same setting of the file.
    """
    stated: dict[tuple[str, ...], object] = {
        ("staticPodPath",): _absolute(static_pod_path),
        ("staticPodURL",): static_pod_url,
        (*IN_AGENT, "nodeName"): node_name,
        (*IN_AGENT, "api", "kubeconfig"): _absolute(kubeconfig),
        (*IN_AGENT, "api", "ownNode"): own_node or None,
        ("numalign", "endpoints", "admission"): _absolute(admission),
        (*IN_AGENT, "stateDirectory"): _absolute(state_directory),
        (*IN_AGENT, "runner"): runner,
        (*IN_AGENT, "address"): address,
    }
    from numalign_agent.process import run_agent  # noqa: PLC0415 - not for --help

    overrides = {path: value for path, value in stated.items() if value is not None}
    click.get_current_context().exit(run_agent(config, overrides))


def _absolute(path: Path | None) -> str | None:
    return None if path is None else str(path.absolute())
