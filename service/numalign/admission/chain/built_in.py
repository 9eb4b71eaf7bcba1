"""The kubelet's own handlers, in its order, for each of its versions (ADM-1, ADM-2)."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace

from numalign.admission.chain.question import Answer, Handler, Operation, Question, deciding
from numalign.admission.chain.version import ChainVersion
from numalign.admission.handlers.allocation import ResizeGates
from numalign.admission.handlers.app_armor import decide_app_armor
from numalign.admission.handlers.declared_features import decide_declared_features
from numalign.admission.handlers.eviction import decide_eviction
from numalign.admission.handlers.failures import NODE_AFFINITY
from numalign.admission.handlers.node_shutdown import GraceGroup, decide_node_shutdown
from numalign.admission.handlers.pod_features import decide_pod_features
from numalign.admission.handlers.predicates import Fit, decide_predicates
from numalign.admission.handlers.resize_feasibility import ResizeFacts, decide_resize
from numalign.admission.handlers.sysctl import SysctlAllowlist, decide_sysctls
from numalign.admission.handlers.verdict import ADMITTED, Verdict, rejected
from numalign.model.feature_gates import FeatureGates

RESIZE_FEASIBILITY = "resize-feasibility"
"""The name of the handler that knows which resizes can never be granted."""

FRESH_NODE_NEEDED = "FreshNodeNeeded"
"""The reason for asking the caller to read the Node object anew."""

_LINUX = "linux"


@dataclass(frozen=True, slots=True, kw_only=True)
class Chain:
    """Handlers in front of the Topology Manager, behind it, and soft ones.

    A pod that a soft handler refuses waits and is asked about again (ARM-7).
    """

    before: tuple[Handler, ...] = ()
    behind: tuple[Handler, ...] = ()
    soft: tuple[Handler, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainSettings:
    """What the handlers are told at start; `declared_features` None: the feature is off."""

    resize_facts: ResizeFacts
    gates: FeatureGates = field(default_factory=FeatureGates)
    resize: ResizeGates = field(default_factory=ResizeGates)
    sysctls: SysctlAllowlist = field(default_factory=SysctlAllowlist)
    app_armor_enabled: bool = False
    declared_features: AbstractSet[str] | None = frozenset()
    grace_groups: tuple[GraceGroup, ...] = ()
    host_os: str = _LINUX


def built_in_chain(settings: ChainSettings, version: ChainVersion = ChainVersion.V1_36) -> Chain:
    """The chain of a version; the allocate-resources handler is the Topology Manager."""
    eviction = deciding(
        "eviction", lambda q: decide_eviction(q.pod, q.facts.conditions, settings.gates)
    )
    sysctl = deciding("sysctl", lambda q: decide_sysctls(q.pod, settings.sysctls))
    shutdown = deciding(
        "node-shutdown",
        lambda q: decide_node_shutdown(q.facts.shutting_down, settings.grace_groups),
    )
    app_armor = (
        (deciding("apparmor", lambda q: decide_app_armor(q.pod, settings.app_armor_enabled)),)
        if settings.host_os == _LINUX
        else ()
    )
    predicates = _predicates(settings, version)
    if version is ChainVersion.V1_31:
        return Chain(before=(eviction, sysctl), behind=(predicates, shutdown), soft=app_armor)
    return Chain(
        before=(_resize(settings), eviction, sysctl),
        behind=(predicates, *app_armor, *_features(settings), shutdown),
    )


def resizing_nothing(settings: ChainSettings) -> Chain:
    """The chain of a kubelet that resizes nothing in place: v1.31 with its defaults (RES-5)."""
    off = replace(settings.resize, in_place=False)
    return Chain(before=(_resize(replace(settings, resize=off)),))


def _resize(settings: ChainSettings) -> Handler:
    def decide(question: Question) -> Verdict:
        if question.operation is Operation.ADD:
            return ADMITTED
        return decide_resize(
            question.pod,
            question.allocation,
            settings.resize_facts,
            settings.resize,
            settings.gates,
        )

    return deciding(RESIZE_FEASIBILITY, decide)


def _predicates(settings: ChainSettings, version: ChainVersion) -> Handler:
    """The predicate handler; v1.31 neither reads the node again nor knows the groups policy."""
    is_new = version is not ChainVersion.V1_31

    def decide(question: Question) -> Answer:
        fit = decide_predicates(
            question.pod,
            question.others,
            question.facts.node,
            question.devices,
            settings.gates,
            host_os=settings.host_os,
            fresh_node=question.facts.fresh_node if is_new else None,
            check_groups_policy=is_new,
            usage=question.usage,
        )
        if is_new and _needs_fresh_node(question, fit):
            return Answer(rejected(FRESH_NODE_NEEDED, fit.verdict.message), retry_after=0)
        return Answer(fit.verdict, fit.victims)

    return deciding("predicates", decide)


def _needs_fresh_node(question: Question, fit: Fit) -> bool:
    """Whether the Node object is to be read anew by who asks about the pod (PRED-10)."""
    return (
        question.facts.fresh_node is None
        and question.facts.caller_reads_node
        and not fit.verdict.admit
        and set(fit.failures) == {NODE_AFFINITY}
    )


def _features(settings: ChainSettings) -> tuple[Handler, ...]:
    pod_features = deciding(
        "pod-features",
        lambda q: decide_pod_features(q.pod, settings.gates.pod_level_resources, settings.host_os),
    )
    declared = settings.declared_features
    if declared is None:
        return (pod_features,)
    return (
        pod_features,
        deciding("node-declared-features", lambda q: decide_declared_features(q.pod, declared)),
    )
