"""The watch of the node's shutdown, if the settings ask for one.

Separate from the chain, to which it only tells whether the node shuts down.
"""

from __future__ import annotations

from functools import partial

from numalign.admission.admit_chain import AdmitChain
from numalign.admission.shutdown.extra import load_logind
from numalign.admission.shutdown.watch import ShutdownWatch, Told
from numalign.config.settings import Settings, ShutdownSource
from numalign.process.admission_chain import grace_groups_of
from numalign.telemetry.logs import get_logger

_SOURCE = "logind"

_log = get_logger("node-shutdown")


def check_shutdown(settings: Settings) -> None:
    """Raises ConfigError where a shutdown cannot be watched as the settings say."""
    if settings.admission.shutdown.source is ShutdownSource.LOGIND:
        load_logind()


def shutdown_watch(settings: Settings, chain: AdmitChain) -> ShutdownWatch | None:
    """A watch that is not started yet; None where none is asked for, or nothing comes of it.

    Raises ConfigError as `check_shutdown` does.
    """
    wanted = settings.admission.shutdown
    if wanted.source is not ShutdownSource.LOGIND:
        return None
    groups = grace_groups_of(settings)
    if not groups:
        _log.warning("node shutdown is not watched: no shutdownGracePeriod is configured")
        return None
    open_logind = load_logind()
    told = Told(
        shutting_down=partial(chain.node.set_shutting_down, source=_SOURCE),
        pods_left=chain.has_pods,
    )
    return ShutdownWatch(
        lambda: open_logind(wanted.bus), told, sum(group.grace for group in groups)
    )
