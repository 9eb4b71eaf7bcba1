"""`numalign-agent nri`: make the container runtime do what Admission granted."""

from __future__ import annotations

from pathlib import Path

import click

from numalign.cli.options import config_option, examples


@click.command(
    epilog=examples(
        "numalign-agent nri --config /etc/numalign/config.yaml",
        "numalign-agent nri --on-reject shared",
        "numalign-agent nri --nri-socket /run/k3s/nri/nri.sock",
    )
)
@config_option
@click.option("--node-name", help="Name of this node; the host's name by default.")
@click.option(
    "--nri-socket",
    type=click.Path(path_type=Path),
    help="The container runtime's NRI socket; /var/run/nri/nri.sock by default.",
)
@click.option("--index", help="Two digits: where the plugin stands among others; 90 by default.")
@click.option("--owner", help="The domain of the plugin's admissions.")
@click.option(
    "--on-reject",
    type=click.Choice(["wait", "evict", "shared"]),
    help="What becomes of a pod that is refused: it waits (the default), is evicted, or runs on "
    "the shared CPUs.",
)
@click.option("--inject-devices", is_flag=True, help="Hand out devices too; for host mode.")
@click.option(
    "--second-owner",
    type=click.Choice(["refuse", "tolerate"]),
    help="What to do beside a kubelet with a static policy.",
)
@click.option("--address", help="host:port where metrics are served.")
def nri(
    config: Path | None,
    node_name: str | None,
    nri_socket: Path | None,
    index: str | None,
    owner: str | None,
    on_reject: str | None,
    inject_devices: bool,
    second_owner: str | None,
    address: str | None,
) -> None:
    """Pin containers of this node through the Node Resource Interface.

    Connects to a container runtime that has NRI (containerd 1.7, CRI-O) and to Admission, waits
    for either as long as it takes, and runs until SIGTERM.
    """
    from numalign_agent.config.loading import IN_AGENT  # noqa: PLC0415 - not for --help
    from numalign_agent.nri.serving import serve  # noqa: PLC0415 - not for --help

    section = (*IN_AGENT, "nri")
    given = {
        (*IN_AGENT, "nodeName"): node_name,
        (*section, "socket"): None if nri_socket is None else str(nri_socket.absolute()),
        (*section, "index"): index,
        (*section, "owner"): owner,
        (*section, "onReject"): on_reject,
        (*section, "injectDevices"): inject_devices or None,
        (*section, "address"): address,
        ("numalign", "secondOwner"): second_owner,
    }
    serve(config, {keys: value for keys, value in given.items() if value is not None})
