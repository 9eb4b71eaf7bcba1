"""Admit handlers of others: `admission.handlers` of the `numalign` section.

Separate from the rest of that part, which is about the kubelet's own handlers.
"""

from __future__ import annotations

import re

from numalign.admission.chain.place import Place, Position
from numalign.admission.chain.version import ChainVersion
from numalign.config.serving import socket_path
from numalign.config.settings import AdmitHandlerSettings, FailurePolicy
from numalign.document.section import Section
from numalign.model.quoting import quoted

_KEYS = ("name", "endpoint", "timeout", "failurePolicy", *Position)
_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]{0,61}[a-z0-9])?\Z")


def read_admit_handlers(
    section: Section, key: str, version: ChainVersion, timeout: float
) -> tuple[AdmitHandlerSettings, ...]:
    """The handlers in the order of the document; mistakes are recorded in its problems.

    `timeout` is how many seconds each may take where it does not say.
    """
    found: list[AdmitHandlerSettings] = []
    items = list(section.sections(key))
    for item in items:
        item.refuse_unknown(_KEYS)
        name = item.required_text("name")
        if name and not _NAME.match(name):
            item.wrong("name", f"must be lower case letters, digits, - and ., not {quoted(name)}")
        found.append(
            AdmitHandlerSettings(
                name=name,
                socket=socket_path(item, "endpoint", item.required_text("endpoint")),
                timeout=item.seconds("timeout", timeout),
                failure_policy=item.choice("failurePolicy", FailurePolicy.FAIL),
                place=_place(item),
            )
        )
    if found:
        _check_places(items, found, version)
    return tuple(found)


def _place(item: Section) -> Place | None:
    given = [position for position in Position if position in item]
    for position in given[1:]:
        item.wrong(position, f"cannot be given together with {given[0].value}")
    if not given:
        return None
    return Place(given[0], item.required_text(given[0]))


def _check_places(
    items: list[Section], handlers: list[AdmitHandlerSettings], version: ChainVersion
) -> None:
    """Look whether each handler finds its place in the chain of that version."""
    # Only a configuration with such handlers pays for loading the chain.
    from numalign.admission.chain.built_in import (  # noqa: PLC0415
        ChainSettings,
        built_in_chain,
    )
    from numalign.admission.chain.placement import Misplaced, Placement  # noqa: PLC0415
    from numalign.admission.chain.question import deciding  # noqa: PLC0415
    from numalign.admission.handlers.resize_feasibility import ResizeFacts  # noqa: PLC0415
    from numalign.admission.handlers.swap import SwapBehavior  # noqa: PLC0415
    from numalign.admission.handlers.verdict import ADMITTED  # noqa: PLC0415

    facts = ResizeFacts(
        cpu_manager_policy="none",
        memory_manager_policy="None",
        swap_behavior=lambda _, __: SwapBehavior.NONE,
    )
    placement = Placement(built_in_chain(ChainSettings(resize_facts=facts), version))
    for item, handler in zip(items, handlers, strict=True):
        try:
            placement.put(deciding(handler.name, lambda _: ADMITTED), handler.place)
        except Misplaced as error:
            item.wrong(error.key, str(error))
