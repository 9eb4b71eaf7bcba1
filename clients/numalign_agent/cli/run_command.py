"""`numalign run`: run a command as a pod of its own, on what Admission gives it."""

from __future__ import annotations

from pathlib import PurePosixPath

import click

from numalign.cli.options import current_reach, examples, reach_options
from numalign_agent.cgroups.settings import wrong_group
from numalign_agent.config.enforce import Enforce
from numalign_agent.run.pod import NAMESPACE, Asked, WrongAmount, checked_amount

OWNER = "run"


def _amount(resource: str) -> object:
    def check(_: click.Context, __: click.Parameter, value: str | None) -> str | None:
        try:
            return None if value is None else checked_amount(resource, value)
        except WrongAmount as error:
            raise click.BadParameter(str(error)) from error

    return check


def _devices(_: click.Context, __: click.Parameter, values: tuple[str, ...]) -> dict[str, str]:
    devices: dict[str, str] = {}
    for value in values:
        resource, equals, amount = value.partition("=")
        if not resource or "/" not in resource:
            raise click.BadParameter(f'"{value}" must be RESOURCE=N, such as example.com/nic=1')
        if not (amount or "1" if equals else "1").isdecimal() or (equals and not amount):
            raise click.BadParameter(f'"{value}": the number of devices must be a whole number')
        if resource in devices:
            raise click.BadParameter(f'"{resource}" is given twice')
        try:
            devices[resource] = checked_amount(resource, amount or "1")
        except WrongAmount as error:
            raise click.BadParameter(f'"{value}": {error}') from error
    return devices


def _named(
    _ctx: click.Context, _parameter: click.Parameter, command: tuple[str, ...]
) -> tuple[str, ...]:
    if command and not command[0]:
        raise click.BadParameter("its first word is empty")
    return command


def _parent(_: click.Context, __: click.Parameter, value: str | None) -> PurePosixPath | None:
    if value is None:
        return None
    wrong = wrong_group(value)
    if wrong:
        raise click.BadParameter(wrong)
    return PurePosixPath(value)


@click.command(
    context_settings={"allow_interspersed_args": False},
    epilog=examples(
        "numalign run --cpus 4 --memory 2Gi -- ./simulate --steps 100",
        "numalign run --cpus 2 --memory 1Gi --device example.com/nic=1 -- ./server",
        "numalign run --cpus 1 --memory 1Gi --hugepages-2Mi 64Mi --enforce cgroup -- ./cache",
    ),
)
@click.argument(
    "command",
    nargs=-1,
    required=True,
    type=click.UNPROCESSED,
    metavar="-- COMMAND...",
    callback=_named,
)
@click.option(
    "--cpus",
    callback=_amount("cpu"),
    metavar="N",
    help="CPUs; whole ones, with --memory, are its own.",
)
@click.option("--memory", callback=_amount("memory"), metavar="SIZE", help="Memory, such as 2Gi.")
@click.option(
    "--hugepages-2Mi",
    "huge_2mi",
    callback=_amount("hugepages-2Mi"),
    metavar="SIZE",
    help="Memory in huge pages of 2 MiB.",
)
@click.option(
    "--hugepages-1Gi",
    "huge_1gi",
    callback=_amount("hugepages-1Gi"),
    metavar="SIZE",
    help="Memory in huge pages of 1 GiB.",
)
@click.option(
    "--device",
    "devices",
    multiple=True,
    callback=_devices,
    metavar="RESOURCE=N",
    help="Devices of a resource; may be given for several.",
)
@click.option("--name", default="", help="Name of the pod; made from the command by default.")
@click.option("--namespace", default=NAMESPACE, show_default=True, help="Namespace of the pod.")
@click.option(
    "--owner",
    default=OWNER,
    show_default=True,
    metavar="NAME",
    help="The domain that the pod belongs to.",
)
@click.option(
    "--enforce",
    type=click.Choice([way.value for way in Enforce if way is not Enforce.NONE]),
    default=Enforce.AUTO.value,
    show_default=True,
    help="By a control group, by CPU affinity, or by the better of them that there is.",
)
@click.option(
    "--cgroup-parent",
    callback=_parent,
    metavar="GROUP",
    help="The control group to make the command's own below; /numalign by default.",
)
@click.option("-q", "--quiet", is_flag=True, help="Say nothing about where the command runs.")
@reach_options
def run(
    command: tuple[str, ...],
    cpus: str | None,
    memory: str | None,
    huge_2mi: str | None,
    huge_1gi: str | None,
    devices: dict[str, str],
    name: str,
    namespace: str,
    owner: str,
    enforce: str,
    cgroup_parent: PurePosixPath | None,
    quiet: bool,
) -> None:
    """Run a command as a pod of its own, on the CPUs, memory and devices that it is given.

    It is admitted as a pod of one container, whose limits are its requests. What it was given
    is released when it ends, also if this program is killed.

    Exit codes: that of the command, 128 and its number if a signal ended it; 125 not admitted
    or not placed, 126 cannot be executed, 127 not found.
    """
    from numalign_agent.run.front import run as run_front  # noqa: PLC0415 - not for --help
    from numalign_agent.run.keeping import Options  # noqa: PLC0415 - as above

    given = {
        "cpu": cpus,
        "memory": memory,
        "hugepages-2Mi": huge_2mi,
        "hugepages-1Gi": huge_1gi,
        **devices,
    }
    amounts = {resource: amount for resource, amount in given.items() if amount is not None}
    reach = current_reach()
    options = Options(
        socket=reach.socket,
        config=reach.config,
        timeout=reach.timeout,
        owner=owner,
        enforce=Enforce(enforce),
        cgroup_parent=cgroup_parent,
        quiet=quiet,
    )
    asked = Asked(command, amounts, name=name, namespace=namespace)
    click.get_current_context().exit(run_front(asked, options))
