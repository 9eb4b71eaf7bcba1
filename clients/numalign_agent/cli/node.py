"""`numalign-agent node`: tell the cluster when this node is ready, and what its NUMA nodes have."""

from __future__ import annotations

from pathlib import Path

import click

from numalign.cli.options import config_option, examples


@click.command(
    epilog=examples(
        "numalign-agent node --config /etc/numalign/config.yaml",
        "numalign-agent node --export-topology --address 127.0.0.1:9471",
    )
)
@config_option
@click.option("--node-name", help="Name of this node; the host's name by default.")
@click.option(
    "--kubeconfig",
    type=click.Path(path_type=Path),
    help="The API server, instead of the configured one.",
)
@click.option("--export-topology", is_flag=True, help="Keep the NodeResourceTopology, too.")
@click.option("--address", metavar="HOST:PORT", help="Serve /metrics, /healthz and /readyz here.")
def node(
    config: Path | None,
    node_name: str | None,
    kubeconfig: Path | None,
    export_topology: bool,
    address: str | None,
) -> None:
    """Tell the cluster how this node stands.

    Takes the taint numalign.io/not-ready off the Node once every service is ready and, where the
    container runtime's plugin is configured, the plugin is connected. Keeps, if told to, the
    node's NodeResourceTopology, which a topology-aware scheduler reads. Runs until SIGTERM.
    """
    from numalign_agent.config.loading import (  # noqa: PLC0415 - not for --help
        IN_AGENT,
        document_with,
    )
    from numalign_agent.node.serving import serve  # noqa: PLC0415 - not for --help

    section = (*IN_AGENT, "node")
    credentials = None if kubeconfig is None else str(kubeconfig.absolute())
    given: dict[tuple[str, ...], object] = {
        (*IN_AGENT, "nodeName"): node_name,
        (*IN_AGENT, "api", "kubeconfig"): credentials,
        (*section, "address"): address,
    }
    overrides = {keys: value for keys, value in given.items() if value is not None}
    if export_topology and not _has(document_with(config, {}), (*section, "topology")):
        overrides[*section, "topology"] = {}
    serve(config, overrides)


def _has(document: object, keys: tuple[str, ...]) -> bool:
    for key in keys:
        if not isinstance(document, dict) or document.get(key) is None:
            return False
        document = document[key]
    return True
