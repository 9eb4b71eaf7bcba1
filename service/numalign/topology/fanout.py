"""All hint providers of one admission, asked at once; what a scope sees as its `Providers`.

It also takes the notes that the answer needs: what each container was given, every call
that was made, who was left out.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import TypeVar

from numalign.errors import NumalignError
from numalign.model.hint import TopologyHint
from numalign.model.ids import AdmissionId
from numalign.model.pod import Container, Pod
from numalign.provider.hint_messages import hint_to_message, hints_from_message
from numalign.provider.messages import deferral_from_message
from numalign.provider.values import AllocationFailure, ResourceFacts
from numalign.topology.claim_hints import ClaimHints
from numalign.topology.messages import found_from_messages
from numalign.topology.ports import ProviderAnswer
from numalign.topology.provider_handle import (
    ProviderDown,
    ProviderFault,
    ProviderHandle,
    StartedCall,
)
from numalign.v1 import hint_provider_pb2 as hp
from numalign.v1 import types_pb2 as pb

T = TypeVar("T")

HintResponse = hp.GetTopologyHintsResponse | hp.GetPodTopologyHintsResponse
AllocateResponse = hp.AllocateResponse | hp.AllocatePodResponse


class Fanout:
    """The providers of one admission, in provider order.

    `one_by_one` asks for allocations in order and stops at the first failure, as the kubelet
    does; else all are asked at once and the first failure in order is reported. Only when all
    have agreed, what cannot be undone is done, one provider after the other.
    """

    def __init__(
        self,
        handles: Sequence[ProviderHandle],
        admission_id: AdmissionId,
        pod: bytes,
        *,
        dry_run: bool,
        one_by_one: bool,
        claims: ClaimHints | None = None,
        group: bool = False,
    ) -> None:
        """Begin one admission; `claims` are hints besides those of the providers.

        In a `group`, other pods come before and behind this one under the same id.
        """
        self._handles = list(handles)
        self._admission_id = admission_id
        self._pod = pod
        self._dry_run = dry_run
        self._one_by_one = one_by_one
        self._claims = claims
        self._group = group
        self._given: dict[str, tuple[pb.ContainerAllocation, ...]] = {}
        self.pod_allocation = pb.PodAllocation()
        self.allocate_calls: list[pb.AllocateCall] = []
        self.plugin_calls: list[pb.PluginCall] = []
        self.warnings: list[str] = []
        self.left_out: list[ProviderHandle] = []
        self.has_taken = False

    @property
    def handles(self) -> tuple[ProviderHandle, ...]:
        """The providers that took part to the end."""
        return tuple(self._handles)

    def devices_of(self, handle: ProviderHandle) -> Iterator[tuple[str, str]]:
        """Each device that the provider gave the pod: its resource, and its id."""
        for allocation in self._given.get(handle.name, ()):
            for device in allocation.devices:
                for name in device.ids:
                    yield device.resource, name

    async def topology_hints(self, pod: Pod, container: Container) -> tuple[ProviderAnswer, ...]:
        """Hints for one container."""
        request = hp.GetTopologyHintsRequest(
            admission_id=self._admission_id, pod=self._pod, container=container.name
        )
        answers = await self._hints(lambda h: h.stub.GetTopologyHints(request, timeout=h.timeout))
        return answers + self._claimed(container.name)

    async def pod_topology_hints(self, pod: Pod) -> tuple[ProviderAnswer, ...]:
        """Hints for the pod as a whole."""
        request = hp.GetPodTopologyHintsRequest(admission_id=self._admission_id, pod=self._pod)
        answers = await self._hints(
            lambda h: h.stub.GetPodTopologyHints(request, timeout=h.timeout)
        )
        return answers + self._claimed(None)

    async def allocate(
        self, pod: Pod, container: Container, affinity: TopologyHint, last: bool
    ) -> AllocationFailure | None:
        """Take what the container asks for; the first failure in provider order, or None."""
        request = hp.AllocateRequest(
            admission_id=self._admission_id,
            pod=self._pod,
            container=container.name,
            affinity=hint_to_message(affinity),
            last=last,
            dry_run=self._dry_run,
            seal_later=not self._one_by_one,
            group=self._group,
            # Only a kubelet's leftovers are told of a pod that was not admitted in the end.
            allocations_when_last=not self._one_by_one,
        )
        return await self._allocate(
            container.name, last, lambda h: h.stub.Allocate(request, timeout=h.timeout)
        )

    async def allocate_pod(
        self, pod: Pod, affinity: TopologyHint, last: bool
    ) -> AllocationFailure | None:
        """Take what the pod as a whole asks for; the first failure, or None."""
        request = hp.AllocatePodRequest(
            admission_id=self._admission_id,
            pod=self._pod,
            affinity=hint_to_message(affinity),
            last=last,
            dry_run=self._dry_run,
            seal_later=not self._one_by_one,
            group=self._group,
        )
        return await self._allocate(
            "", last, lambda h: h.stub.AllocatePod(request, timeout=h.timeout)
        )

    async def prepare(self) -> None:
        """Have the parts of the group made durable, those of all its pods."""
        request = hp.PrepareRequest(admission_id=self._admission_id)
        await self._all(lambda h: h.stub.Prepare(request, timeout=h.timeout))

    async def facts(self, pod: Pod, container: Container | None) -> list[pb.ResourceFacts]:
        """What stands behind the hints that were given last, of every provider."""
        if container is None:
            whole = hp.GetPodTopologyHintsRequest(
                admission_id=self._admission_id, pod=self._pod, with_facts=True
            )
            responses: Sequence[HintResponse] = await self._all(
                lambda h: h.stub.GetPodTopologyHints(whole, timeout=h.timeout)
            )
        else:
            single = hp.GetTopologyHintsRequest(
                admission_id=self._admission_id,
                pod=self._pod,
                container=container.name,
                with_facts=True,
            )
            responses = await self._all(
                lambda h: h.stub.GetTopologyHints(single, timeout=h.timeout)
            )
        return [fact for response in responses for fact in response.facts]

    async def amounts(self, pod: Pod, container: Container | None) -> tuple[ResourceFacts, ...]:
        """The same facts, as values."""
        return tuple(found.facts for found in found_from_messages(await self.facts(pod, container)))

    def allocations(
        self, pod: Pod, affinities: dict[str, TopologyHint]
    ) -> list[pb.ContainerAllocation]:
        """What each container holds, from every provider together, in the order of the pod."""
        merged = {c.name: pb.ContainerAllocation(container=c.name) for c in pod.all_containers()}
        for given in self._given.values():
            for part in given:
                merged[part.container].MergeFrom(part)
        for name, hint in affinities.items():
            merged[name].affinity.CopyFrom(hint_to_message(hint))
        return list(merged.values())

    def _claimed(self, container: str | None) -> tuple[ProviderAnswer, ...]:
        return () if self._claims is None else self._claims.answer(container)

    async def _hints(
        self, call: Callable[[ProviderHandle], StartedCall[HintResponse]]
    ) -> tuple[ProviderAnswer, ...]:
        responses = await self._all(call)
        answers = []
        for handle, response in zip(self._handles, responses, strict=True):
            if response.fault:
                raise ProviderFault(response.fault)
            if response.HasField("deferral"):
                raise deferral_from_message(response.deferral)
            hints = hints_from_message(response.hints) if response.HasField("hints") else None
            answers.append(ProviderAnswer(handle.name, hints))
        return tuple(answers)

    async def _allocate(
        self,
        container: str,
        last: bool,
        call: Callable[[ProviderHandle], StartedCall[AllocateResponse]],
    ) -> AllocationFailure | None:
        self.has_taken = True
        if self._one_by_one:
            for handle in tuple(self._handles):
                failure = self._note(handle, container, await handle.decide(partial(call, handle)))
                if failure is not None:
                    return failure
            return None
        responses = await self._all(call)
        unsealed = []
        for handle, response in zip(self._handles, responses, strict=True):
            failure = self._note(handle, container, response)
            if failure is not None:
                return failure
            if response.unsealed:
                unsealed.append(handle)
        if not last or self._dry_run:
            return None
        return await self._seal(unsealed, container)

    async def _seal(
        self, handles: Iterable[ProviderHandle], container: str
    ) -> AllocationFailure | None:
        request = hp.SealRequest(admission_id=self._admission_id, pod=self._pod, group=self._group)
        for handle in handles:
            response = await handle.decide(partial(_ask_seal, handle, request))
            failure = self._take(handle, response)
            if failure is not None:
                # The allocation is what failed, and it did so after all the others.
                asked = pb.AllocateCall(provider=handle.name, container=container)
                self.allocate_calls.remove(asked)
                asked.error = failure.message
                self.allocate_calls.append(asked)
                return failure
        return None

    def _note(
        self, handle: ProviderHandle, container: str, response: AllocateResponse
    ) -> AllocationFailure | None:
        failure = self._take(handle, response)
        self.allocate_calls.append(
            pb.AllocateCall(
                provider=handle.name, container=container, error=response.failure.message
            )
        )
        if isinstance(response, hp.AllocatePodResponse):
            self.pod_allocation.MergeFrom(response.pod_allocation)
        return failure

    def _take(
        self, handle: ProviderHandle, response: AllocateResponse | hp.SealResponse
    ) -> AllocationFailure | None:
        failure = response.failure
        if failure.fault:
            raise ProviderFault(failure.fault)
        if failure.HasField("deferral"):
            raise deferral_from_message(failure.deferral)
        self.plugin_calls.extend(response.plugin_calls)
        self._given[handle.name] = handle.signed(response.allocations)
        if response.HasField("failure"):
            return AllocationFailure(failure.message, failure.reason or None)
        return None

    async def _all(self, call: Callable[[ProviderHandle], StartedCall[T]]) -> list[T]:
        # The calls are under way together once they are made; awaited one after the other,
        # they need no tasks of their own.
        started = [call(handle) for handle in self._handles]
        outcomes: list[T | NumalignError] = []
        try:
            for handle, under_way in zip(self._handles, started, strict=True):
                try:
                    outcomes.append(await handle.decide(partial(_itself, under_way)))
                except NumalignError as error:
                    outcomes.append(error)
        except BaseException:
            for under_way in started:
                under_way.cancel()
            raise
        answers: list[T] = []
        kept: list[ProviderHandle] = []
        for handle, outcome in zip(self._handles, outcomes, strict=True):
            if isinstance(outcome, ProviderDown) and handle.may_be_ignored:
                self.warnings.append(f"{outcome}; it was left out of the decision")
                self._given.pop(handle.name, None)
                self.left_out.append(handle)
            elif isinstance(outcome, NumalignError):
                raise outcome
            else:
                answers.append(outcome)
                kept.append(handle)
        self._handles = kept
        return answers


def _itself(under_way: StartedCall[T]) -> Awaitable[T]:
    return under_way


def _ask_seal(handle: ProviderHandle, request: hp.SealRequest) -> Awaitable[hp.SealResponse]:
    return handle.stub.Seal(request, timeout=handle.timeout)
