"""What the plugin knows: pods and containers of the runtime, and Admission's records of them.

Keeps, and decides nothing itself: it puts the two pictures side by side for `plan`. Neither
picture is written to disk. The runtime gives its own at every connection, Admission at every
watch.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from numalign.model.cpu_set import CpuSet
from numalign.model.revision import is_after
from numalign_agent.nri.heard import Heard
from numalign_agent.nri.known import (
    Idle,
    KnownContainer,
    KnownPod,
    Record,
    Sandbox,
    SeenContainer,
)
from numalign_agent.nri.ownership import Ownership
from numalign_agent.nri.plan.estimate import estimated_uid
from numalign_agent.nri.plan.pinning import Pinning
from numalign_agent.nri.plan.standing import Grants, Standing, pinning_of, shared_pool
from numalign_agent.nri.plan.updates import LiveContainer, Update, updates

_NOTHING: Grants = {}


class Books:
    """Everything known at one moment. `owner` is the domain of the plugin's own admissions."""

    def __init__(self, owner: str, ownership: Ownership, *, set_quota: bool = True) -> None:
        self._owner = owner
        self._ownership = ownership
        self._set_quota = set_quota
        self._pods: dict[str, KnownPod] = {}
        self._sandboxes: dict[str, str] = {}
        self._containers: dict[str, str] = {}
        self._records: dict[str, Record] = {}
        self._told: CpuSet | None = None
        self._order = 0
        self.heard = Heard()
        """What events have told lately; a picture that says otherwise is older."""
        self.doubtful = False
        """Whether the last picture lacked what an event told of: another one is needed."""

    # The runtime's picture

    def see_sandbox(self, sandbox: Sandbox) -> KnownPod:
        """A sandbox is there; its pod."""
        pod = self._pods.get(sandbox.pod_uid)
        if pod is None:
            self._order += 1
            pod = KnownPod(sandbox.pod_uid, sandbox.name, sandbox.namespace, self._order)
            self._pods[pod.uid] = pod
        if sandbox.id not in pod.stopped:
            pod.rests_since = None
        pod.sandboxes[sandbox.id] = sandbox
        self._sandboxes[sandbox.id] = pod.uid
        return pod

    def see_container(
        self, sandbox: Sandbox, seen: SeenContainer, *, new: bool = False
    ) -> KnownContainer:
        """A container is there, or (`new`) about to be created. What it is set to is given.

        Of one that is known, only what has changed counts: the kernel may have said otherwise.

        CPUs that are set were set by somebody else where the plugin has not done it and, for a
        container that was there before, no record of its own says that it should have.
        """
        pod = self.see_sandbox(sandbox)
        container = pod.containers.get(seen.id)
        if container is None:
            container = KnownContainer(seen, seen.set_to)
            container.foreign = bool(seen.set_to.cpus) and not (
                self._ownership.has(seen.id) or (not new and self._own_record(pod, seen.name))
            )
            pod.containers[seen.id] = container
            pod.idle = None
            self._containers[seen.id] = pod.uid
        else:
            if seen.set_to != container.seen.set_to:
                container.given = seen.set_to
            container.seen = seen
        if container.foreign and pod.standing is Standing.WAITING and pod.uid not in self._records:
            pod.standing = Standing.FOREIGN
        return container

    def given(self, container_id: str, pinning: Pinning) -> None:
        """The runtime was told where a container is to run; unset parts stay as they were."""
        container = self.container(container_id)
        if container is None:
            return
        old = container.given
        container.given = Pinning(
            pinning.cpus or old.cpus, pinning.mems or old.mems, pinning.exclusive
        )
        container.seen = replace(container.seen, set_to=container.given)

    def container_gone(self, container_id: str) -> None:
        """A container has ended."""
        pod_uid = self._containers.pop(container_id, None)
        if pod_uid is not None and (pod := self._pods.get(pod_uid)):
            pod.containers.pop(container_id, None)
            pod.idle = Idle(0.0, 0.0) if not pod.containers else None
        self._ownership.forget(container_id)

    def sandbox_stopped(self, sandbox_id: str, now: float) -> None:
        """A sandbox has stopped; where it was its pod's last one, the pod rests from `now` on."""
        pod = self.pod_of_sandbox(sandbox_id)
        if pod is None:
            return
        pod.stopped.add(sandbox_id)
        for container_id, container in tuple(pod.containers.items()):
            if container.seen.sandbox_id == sandbox_id:
                self.container_gone(container_id)
        if pod.stopped.issuperset(pod.sandboxes) and pod.rests_since is None:
            pod.rests_since = now

    def sandbox_removed(self, sandbox_id: str) -> KnownPod | None:
        """A sandbox is gone; its pod, if that was its last one, which is forgotten then."""
        pod_uid = self._sandboxes.pop(sandbox_id, None)
        pod = None if pod_uid is None else self._pods.get(pod_uid)
        if pod is None:
            return None
        pod.sandboxes.pop(sandbox_id, None)
        pod.stopped.discard(sandbox_id)
        if pod.sandboxes:
            return None
        for container_id in tuple(pod.containers):
            self.container_gone(container_id)
        del self._pods[pod.uid]
        return pod

    def synchronize(
        self, sandboxes: Iterable[Sandbox], containers: Iterable[SeenContainer], now: float
    ) -> tuple[KnownPod, ...]:
        """The runtime's whole picture: what is not in it is gone. The pods that are gone.

        What an event told lately goes before it, and leaves it `doubtful`.

        A runtime lists sandboxes that have stopped as well. It tells no state of them; but where
        others have a process, one without a process and without containers has stopped.
        """
        self.heard.forget_old(now)
        by_id = {s.id: s for s in sandboxes if not self.heard.has_ended(s.id, now)}
        seen = [
            container
            for container in containers
            if container.sandbox_id in by_id and not self.heard.has_ended(container.id, now)
        ]
        there = {container.id for container in seen}
        missing = [i for i in self._containers if i not in there]
        missing_sandboxes = [i for i in self._sandboxes if i not in by_id]
        fresh = {i for i in (*missing, *missing_sandboxes) if self.heard.has_begun(i, now)}
        self.doubtful = bool(fresh)
        for container_id in missing:
            if container_id not in fresh:
                self.container_gone(container_id)
        gone = [self.sandbox_removed(i) for i in missing_sandboxes if i not in fresh]
        for sandbox in by_id.values():
            self.see_sandbox(sandbox)
        for container in sorted(seen, key=lambda c: c.created_at):
            self.see_container(by_id[container.sandbox_id], container)
        if any(sandbox.pid for sandbox in by_id.values()):
            busy = {container.sandbox_id for container in seen}
            for sandbox in by_id.values():
                if not sandbox.pid and sandbox.id not in busy:
                    self.sandbox_stopped(sandbox.id, now)
        self._ownership.keep_only(there | fresh)
        return tuple(pod for pod in gone if pod is not None)

    # Admission's picture

    def recorded(self, pod_uid: str, record: Record) -> None:
        """A pod is admitted, or what it holds has changed. Older news than known is passed over."""
        known = self._records.get(pod_uid)
        if known is None or not is_after(known.revision, record.revision):
            self._records[pod_uid] = record

    def released(self, pod_uid: str, revision: int) -> None:
        """A pod is not admitted any more, at a revision."""
        known = self._records.get(pod_uid)
        if known is not None and not is_after(known.revision, revision):
            del self._records[pod_uid]

    def not_recorded(self, pod_uid: str) -> None:
        """Admission says that it does not have a pod."""
        self._records.pop(pod_uid, None)

    def admission_started_over(self) -> None:
        """Admission has lost its history: nothing that it told before counts any more."""
        self._records.clear()
        self._told = None

    def pool_is(self, cpus: CpuSet) -> None:
        """Admission has told the CPUs of the shared pool."""
        self._told = cpus

    # Both side by side

    @property
    def shared(self) -> CpuSet | None:
        """The CPUs that shared containers may use; None as long as they are not known."""
        grants = (g for record in self._records.values() for g in record.grants.values())
        return shared_pool(self._told, grants)

    def standing(self, pod: KnownPod) -> Standing:
        """How a pod stands."""
        record = self._records.get(pod.uid)
        if record is None:
            return pod.standing
        return Standing.ADMITTED if record.owner == self._owner else Standing.FOREIGN

    def judge_anew(self, pod: KnownPod) -> None:
        """What was decided about a pod that has no record does not count any more.

        One whose containers are admitted one by one goes on with that: admitted as a whole, it
        would hold everything twice.
        """
        if len(self.uids_held(pod)) == 1:
            pod.standing, pod.refusal = Standing.WAITING, None
            pod.judged.clear()

    def is_recorded(self, pod_uid: str) -> bool:
        """Whether Admission has a pod of this uid, whoever asked for it."""
        return pod_uid in self._records

    def record_of(self, pod: KnownPod, container: str) -> tuple[str, Record] | None:
        """The admission that a container has a place by, with its uid; None if it has none."""
        uid = self._uid(pod, container)
        record = self._records.get(uid)
        return None if record is None or record.owner != self._owner else (uid, record)

    def wanted(self, pod: KnownPod, container: str) -> Pinning | None:
        """Where a container of this name is to run; None leaves it alone."""
        return self._wanted(pod, container, self.shared)

    def pending(self, besides: str = "") -> tuple[Update, ...]:
        """What the runtime has to be told for everything to be where it should.

        `besides` is a container that is being created, of which it is told otherwise.
        """
        shared = self.shared
        live = [
            LiveContainer(
                id=container.id,
                given=container.given,
                wanted=self._wanted(pod, container.name, shared),
                quota=container.seen.settings.quota,
            )
            for pod, container in self.live()
            if container.id != besides
        ]
        return updates(live, set_quota=self._set_quota)

    def live(self) -> Iterator[tuple[KnownPod, KnownContainer]]:
        """Every container that is the plugin's to place, with its pod."""
        for pod in self._pods.values():
            for container in pod.containers.values():
                if not container.foreign:
                    yield pod, container

    def pods(self) -> tuple[KnownPod, ...]:
        """All pods, those seen first first."""
        return tuple(self._pods.values())

    def waiting(self) -> tuple[KnownPod, ...]:
        """Pods with containers of which nothing is decided, oldest first."""
        waiting = (
            pod
            for pod in self._pods.values()
            if pod.containers and self.standing(pod) is Standing.WAITING
        )
        return tuple(sorted(waiting, key=_age))

    def unjudged(self) -> tuple[tuple[KnownPod, KnownContainer], ...]:
        """Containers that are to be judged by themselves and have not been yet."""
        return tuple(
            (pod, container)
            for pod, container in self.live()
            if self.standing(pod) is Standing.ESTIMATED
            and container.id not in pod.judged
            and not self.is_recorded(estimated_uid(pod.uid, container.name))
        )

    def resting(self) -> tuple[KnownPod, ...]:
        """Pods of which every sandbox has stopped and that hold something all the same."""
        return tuple(
            pod
            for pod in self._pods.values()
            if pod.rests_since is not None and any(map(self.is_recorded, self.uids_held(pod)))
        )

    def idle(self, now: float, pause: float) -> tuple[KnownPod, ...]:
        """Pods whose last container has ended though a sandbox is up, and that are due for a look.

        A runtime that was restarted tells nothing of sandboxes that are older, so whether one
        has stopped has to be asked: after `pause` seconds, and each time twice as long after.
        """
        due = []
        for pod in self._pods.values():
            if pod.idle is None or pod.rests_since is not None:
                continue
            if not pod.idle.pause:
                pod.idle = Idle(now + pause, 2 * pause)
            elif now >= pod.idle.look_at:
                pod.idle = Idle(now + pod.idle.pause, 2 * pod.idle.pause)
                due.append(pod)
        return tuple(due)

    def uids_held(self, pod: KnownPod) -> tuple[str, ...]:
        """Uids under which Admission may have something for a pod: its own and estimated ones."""
        prefix = estimated_uid(pod.uid, "")
        return (pod.uid, *(uid for uid in self._records if uid.startswith(prefix)))

    def active_uids(self) -> tuple[str, ...]:
        """Uids of admissions whose pods are up, for Reconcile."""
        return tuple(
            uid
            for pod in self._pods.values()
            if pod.rests_since is None
            for uid in self.uids_held(pod)
        )

    def pod_of_sandbox(self, sandbox_id: str) -> KnownPod | None:
        """The pod of a sandbox; None for a sandbox that was never seen."""
        return self._pods.get(self._sandboxes.get(sandbox_id, ""))

    def container(self, container_id: str) -> KnownContainer | None:
        """A container by its id; None for one that was never seen or has ended."""
        pod = self._pods.get(self._containers.get(container_id, ""))
        return None if pod is None else pod.containers.get(container_id)

    def counts(self) -> Mapping[str, int]:
        """How many containers there are of each standing."""
        found = dict.fromkeys(Standing, 0)
        for pod in self._pods.values():
            for container in pod.containers.values():
                standing = Standing.FOREIGN if container.foreign else self.standing(pod)
                found[standing] += 1
        return {standing.value: count for standing, count in found.items()}

    def _wanted(self, pod: KnownPod, container: str, shared: CpuSet | None) -> Pinning | None:
        record = self._records.get(self._uid(pod, container))
        grants = _NOTHING if record is None else record.grants
        return pinning_of(self.standing(pod), container, grants, shared)

    def _uid(self, pod: KnownPod, container: str) -> str:
        estimated = self.standing(pod) is Standing.ESTIMATED
        return estimated_uid(pod.uid, container) if estimated else pod.uid

    def _own_record(self, pod: KnownPod, container: str) -> bool:
        for uid in (pod.uid, estimated_uid(pod.uid, container)):
            record = self._records.get(uid)
            if record is not None:
                return record.owner == self._owner
        return False


def _age(pod: KnownPod) -> tuple[str | int, ...]:
    """By the pod's own creation where that is known, then by its first container's."""
    created = [c.seen.created_at for c in pod.containers.values() if c.seen.created_at]
    return (pod.as_agent_pod.created, min(created, default=0), pod.order)
