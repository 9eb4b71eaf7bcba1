"""What new settings change in a provider: another engine over the same books, or other devices.

Separate from putting the providers together. Running pods keep what they have; what does not
fit the new settings is reported, and the Topology Manager hears of it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import TypeAlias, TypeVar

from numalign.config.settings import Settings
from numalign.device.engine import DeviceEngine
from numalign.errors import Unavailable
from numalign.process.change import Change, InForce, refusals
from numalign.process.device_life import DeviceLife
from numalign.process.generation import Generation
from numalign.process.provider_context import ProviderContext
from numalign.provider.engine import Engine
from numalign.provider.ledger import Ledger
from numalign.telemetry.logs import get_logger

S = TypeVar("S")

Check: TypeAlias = Callable[[Settings], Awaitable[Change]]

Build: TypeAlias = Callable[[ProviderContext], tuple[Engine[S], Callable[[], None]]]
"""Makes the engine for some settings, and what has the servicer tell that engine's books.

Raises StartError.
"""

_log = get_logger("provider")


def engine_check(
    context: ProviderContext,
    ledger: Ledger[S],
    generation: Generation,
    *,
    settings_of: Callable[[Settings], Mapping[str, object]],
    build: Build[S],
) -> Check:
    """How a provider with an engine of its own takes new settings.

    `settings_of` are the settings that the engine is built from, by path.
    """
    in_force = InForce(settings_of(context.settings))

    async def check(settings: Settings) -> Change:
        values = settings_of(settings)
        changed = in_force.changed(values)
        if not changed:
            return Change(apply=lambda: _counted(generation, settings))
        now = replace(context, settings=settings)
        with refusals():
            engine, serve = build(now)

        def verify() -> None:
            with refusals():
                ledger.fits(engine)

        async def apply() -> tuple[str, ...]:
            for report in await _exchanged(ledger, engine, settings.provider_timeout):
                _log.warning(report, provider=engine.name)
            serve()
            in_force.now(values)
            await generation.change(settings)
            return changed

        verify()
        return Change(exclusive=True, verify=verify, apply=apply)

    return check


def device_check(
    context: ProviderContext, engine: DeviceEngine, life: DeviceLife, generation: Generation
) -> Check:
    """How the device provider takes new settings: the engine stays, what it knows changes."""
    in_force = InForce({"featureGates": context.settings.gates})

    async def check(settings: Settings) -> Change:
        life.check(settings)
        values = {"featureGates": settings.gates}
        changed = in_force.changed(values)

        async def apply() -> tuple[str, ...]:
            applied = await life.reload(settings)
            if changed:
                engine.update_gates(settings.gates)
                in_force.now(values)
            await generation.change(settings)
            return (*applied, *changed)

        return Change(exclusive=bool(changed), apply=apply)

    return check


async def _counted(generation: Generation, settings: Settings) -> tuple[str, ...]:
    await generation.change(settings)
    return ()


async def _exchanged(ledger: Ledger[S], engine: Engine[S], seconds: float) -> tuple[str, ...]:
    try:
        async with asyncio.timeout(seconds):
            with refusals():
                return await ledger.change_engine(engine)
    except TimeoutError as error:
        raise Unavailable(
            f"provider {engine.name}: an admission was open for {seconds} seconds; nothing was "
            "changed here"
        ) from error
