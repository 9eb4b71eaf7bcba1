"""The RPCs that a replay uses, over whatever holds the services. No RPC is there for it alone."""

from __future__ import annotations

from collections.abc import Iterable

from numalign.config.settings import Service
from numalign.kube.core.v1 import core_pb2
from numalign.replay.driver import Driver
from numalign.replay.recordings import Json
from numalign.replay.words import cpu_words, device_words, hint_words, memory_words
from numalign.v1 import admission_pb2 as ad
from numalign.v1 import hint_provider_pb2 as hp
from numalign.v1 import topology_pb2 as tm
from numalign.v1 import types_pb2 as pb
from numalign.v1.admission_pb2_grpc import AdmissionStub
from numalign.v1.hint_provider_pb2_grpc import HintProviderStub
from numalign.v1.topology_pb2_grpc import TopologyManagerStub

OWNER = "replay"
"""The domain of the replay's pods."""

_STATE = hp.GetStateRequest()


class Services:
    """Stubs of the services that a driver has opened."""

    def __init__(self, driver: Driver) -> None:
        self._admission = AdmissionStub(driver.channel(Service.ADMISSION))
        self._topology = TopologyManagerStub(driver.channel(Service.TOPOLOGY))
        self._cpu = HintProviderStub(driver.channel(Service.CPU))
        self._memory = HintProviderStub(driver.channel(Service.MEMORY))
        self._device = HintProviderStub(driver.channel(Service.DEVICE))

    async def admit(self, pod: core_pb2.Pod) -> ad.AdmitResponse:
        """Have a pod decided on, with everything there is to say about it."""
        return await self._admission.Admit(
            ad.AdmitRequest(pod=pod, owner=OWNER, explain=pb.EXPLAIN_LEVEL_FULL)
        )

    async def resize(self, pod: core_pb2.Pod) -> ad.AdmitResponse:
        """Have the Topology Manager itself say whether an admitted pod can be resized.

        In the recordings no handler stands before it.
        """
        request = tm.TopologyManagerAdmitRequest(
            pod=pod.SerializeToString(),
            operation=pb.OPERATION_RESIZE,
            owner=OWNER,
            explain=pb.EXPLAIN_LEVEL_FULL,
        )
        return (await self._topology.Admit(request)).decision

    async def reconcile(
        self,
        *,
        ready: bool,
        active: Iterable[str] = (),
        running: Iterable[pb.RunningContainer] = (),
        as_of_revision: int = 0,
    ) -> ad.ReconcileResponse:
        """Say which pods and containers there are, and whether that is all of them."""
        return await self._admission.Reconcile(
            ad.ReconcileRequest(
                owner=OWNER,
                active_pod_uids=active,
                running_containers=running,
                as_of_revision=as_of_revision,
                sources_ready=ready,
            )
        )

    async def add_container(self, pod_uid: str, name: str, container_id: str) -> None:
        """A container is about to start."""
        await self._admission.AddContainer(
            ad.AddContainerRequest(pod_uid=pod_uid, container_name=name, container_id=container_id)
        )

    async def remove_container(self, container_id: str) -> None:
        """A container is gone from the runtime."""
        await self._admission.RemoveContainer(ad.RemoveContainerRequest(container_id=container_id))

    async def give_back(self, pod_uid: str, name: str, container_id: str) -> None:
        """Have the CPU and memory providers take back what one container holds."""
        request = hp.HintProviderRemoveContainerRequest(
            pod_uid=pod_uid, container=name, container_id=container_id
        )
        await self._cpu.RemoveContainer(request)
        await self._memory.RemoveContainer(request)

    async def release(self, pod_uid: str) -> None:
        """A pod ended."""
        await self._admission.Release(ad.ReleaseRequest(pod_uid=pod_uid))

    async def affinity(self, pod_uid: str, name: str) -> Json:
        """The stored hint of a container."""
        response = await self._topology.GetAffinity(
            tm.GetAffinityRequest(pod_uid=pod_uid, container_name=name)
        )
        return hint_words(response.affinity)

    async def books(self) -> Books:
        """The books of the three providers."""
        return Books(
            (await self._cpu.GetState(_STATE)).cpu,
            (await self._memory.GetState(_STATE)).memory,
            (await self._device.GetState(_STATE)).device,
        )

    async def answer(self) -> None:
        """Have every service answer something; raises AioRpcError if one does not."""
        await self._admission.ListAdmissions(ad.ListAdmissionsRequest())
        await self._topology.GetPolicy(tm.GetPolicyRequest())
        for provider in (self._cpu, self._memory, self._device):
            await provider.GetInfo(hp.GetInfoRequest())


class Books:
    """The books of the three providers at one time."""

    def __init__(self, cpu: hp.CpuState, memory: hp.MemoryState, device: hp.DeviceState) -> None:
        self.cpu = cpu
        self._memory = memory
        self.words: Json = {**cpu_words(cpu), **memory_words(memory), **device_words(device)}

    def holdings(self, pod_uid: str, name: str) -> Json:
        """What a container holds; its affinity is not in the books."""
        return {
            "cpus": self.words["cpu_assignments"].get(pod_uid, {}).get(name, ""),
            "memory_blocks": self.words["memory_assignments"].get(pod_uid, {}).get(name, []),
            "devices": self.words["pod_devices"].get(pod_uid, {}).get(name, {}),
        }

    def pod_allocation(self, pod_uid: str) -> pb.PodAllocation:
        """What a pod holds as a whole."""
        return pb.PodAllocation(
            cpus=next((p.cpus for p in self.cpu.pods if p.pod_uid == pod_uid), ""),
            memory=next((p.blocks for p in self._memory.pods if p.pod_uid == pod_uid), ()),
        )
