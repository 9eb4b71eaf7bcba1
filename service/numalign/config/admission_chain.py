"""What the chain of admit handlers is told: the `admission` part of the `numalign` section.

And, apart from it, the keys of the KubeletConfiguration that only the chain reads. Those are
read when the Admission service starts, and what is wrong with them stops it (DES-7).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from numalign.admission.handlers.eviction_state import DEFAULT_TRANSITION_PERIOD
from numalign.admission.handlers.eviction_thresholds import LINUX_DEFAULTS, EvictionOptions
from numalign.admission.handlers.node_shutdown import GraceGroup, grace_groups
from numalign.admission.handlers.swap import SwapBehavior
from numalign.config.admit_handlers import read_admit_handlers
from numalign.config.settings import AdmissionSettings, ShutdownSettings
from numalign.document.duration import DurationSyntaxError, parse_duration
from numalign.document.problems import Problems
from numalign.document.section import Section, shown
from numalign.model.quoting import quoted

_KEYS = ("chain", "node", "declaredFeatures", "nodeFs", "imageFs", "handlers", "shutdown")
_PODS = ("pods",)

CHAIN_KEYS = (
    "evictionHard",
    "evictionSoft",
    "evictionSoftGracePeriod",
    "evictionMinimumReclaim",
    "evictionPressureTransitionPeriod",
    "mergeDefaultEvictionSettings",
    "enforceNodeAllocatable",
    "allowedUnsafeSysctls",
    "shutdownGracePeriod",
    "shutdownGracePeriodCriticalPods",
    "shutdownGracePeriodByPodPriority",
    "memorySwap",
)
"""The keys of a KubeletConfiguration that the chain reads."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainKeys:
    """What the KubeletConfiguration says to the chain. Times are in seconds."""

    eviction: EvictionOptions
    transition_period: float
    allowed_unsafe_sysctls: tuple[str, ...]
    shutdown_grace_period: float
    shutdown_grace_period_critical_pods: float
    shutdown_grace_period_by_pod_priority: tuple[tuple[int, float], ...]
    swap_behavior: SwapBehavior

    @property
    def grace_groups(self) -> tuple[GraceGroup, ...]:
        """The groups in which pods end when the node shuts down; none: pods go on (SHUT-2)."""
        return grace_groups(
            self.shutdown_grace_period,
            self.shutdown_grace_period_critical_pods,
            self.shutdown_grace_period_by_pod_priority,
        )


def read_admission(section: Section, base: Path, timeout: float) -> AdmissionSettings:
    """The settings; mistakes are recorded in the problems of the section.

    `timeout` is how many seconds a handler of others may take where it does not say.
    """
    section.refuse_unknown(_KEYS)
    default = AdmissionSettings()
    chain = section.choice("chain", default.chain)
    return AdmissionSettings(
        chain=chain,
        node_file=base / section.required_text("node") if "node" in section else None,
        declared_features=_texts(section, "declaredFeatures"),
        node_fs=_directory(section, "nodeFs") or default.node_fs,
        image_fs=_directory(section, "imageFs"),
        handlers=read_admit_handlers(section, "handlers", chain, timeout),
        shutdown=read_shutdown(section.section("shutdown")),
    )


def read_shutdown(section: Section) -> ShutdownSettings:
    """Who says that the node shuts down."""
    section.refuse_unknown(("source", "bus"))
    default = ShutdownSettings()
    bus = section.required_text("bus") if "bus" in section else None
    if bus and "=" not in bus:
        section.wrong("bus", f"must be a D-Bus address such as unix:path=/a, not {quoted(bus)}")
    return ShutdownSettings(source=section.choice("source", default.source), bus=bus)


def read_chain_keys(kubelet: Mapping[str, object]) -> ChainKeys:
    """What a KubeletConfiguration says. Raises DocumentError (a ConfigError) if it is wrong."""
    problems = Problems()
    section = Section(kubelet, "", problems)
    keys = ChainKeys(
        eviction=_eviction(section),
        transition_period=_seconds(section, "evictionPressureTransitionPeriod")
        or DEFAULT_TRANSITION_PERIOD,
        allowed_unsafe_sysctls=_texts(section, "allowedUnsafeSysctls"),
        shutdown_grace_period=_seconds(section, "shutdownGracePeriod"),
        shutdown_grace_period_critical_pods=_seconds(section, "shutdownGracePeriodCriticalPods"),
        shutdown_grace_period_by_pod_priority=tuple(
            (
                item.integer("priority", 0),
                float(item.integer("shutdownGracePeriodSeconds", 0, 0)),
            )
            for item in section.sections("shutdownGracePeriodByPodPriority")
        ),
        swap_behavior=_swap_behavior(section.section("memorySwap")),
    )
    problems.refuse()
    return keys


def _eviction(section: Section) -> EvictionOptions:
    """The options, with the defaults of EVI-9 where no hard threshold is set, or merged in."""
    hard = section.text_map("evictionHard") if "evictionHard" in section else None
    if hard is None:
        hard = dict(LINUX_DEFAULTS)
    elif section.boolean("mergeDefaultEvictionSettings"):
        hard = {**LINUX_DEFAULTS, **hard}
    return EvictionOptions(
        hard=hard,
        soft=section.text_map("evictionSoft"),
        soft_grace_period=section.text_map("evictionSoftGracePeriod"),
        minimum_reclaim=section.text_map("evictionMinimumReclaim"),
        enforce_node_allocatable=_texts(section, "enforceNodeAllocatable")
        if "enforceNodeAllocatable" in section
        else _PODS,
    )


def _swap_behavior(section: Section) -> SwapBehavior:
    """What containers may do; an empty word counts as not given."""
    default = SwapBehavior.NONE
    return section.choice("swapBehavior", default) if section.raw("swapBehavior") else default


def _seconds(section: Section, key: str) -> float:
    """A duration of any sign; 0 where it is absent or wrong."""
    text = section.text(key, "0")
    try:
        return parse_duration(text)
    except DurationSyntaxError as error:
        section.wrong(key, str(error))
        return 0.0


def _texts(section: Section, key: str) -> tuple[str, ...]:
    texts = []
    for path, item in section.items(key):
        if isinstance(item, str):
            texts.append(item)
        else:
            section.problems.add(path, f"must be text, not {shown(item)}")
    return tuple(texts)


def _directory(section: Section, key: str) -> Path | None:
    if key not in section:
        return None
    path = Path(section.text(key))
    if not path.is_absolute():
        section.wrong(key, f"must be an absolute path, not {shown(section.raw(key))}")
        return None
    return path
