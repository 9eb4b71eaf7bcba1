"""A recorded history told to the services step by step; what they answer, as a recording.

It follows the recorded history, whatever the services decide: a pod that was refused there
leaves the node here too, so that one difference does not bring on the next.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import cast

from grpc import aio

from numalign.config.scenario_node import ScenarioNode, scenario_document
from numalign.config.settings import Compatibility
from numalign.errors import ConfigError, StartError
from numalign.kube.core.v1 import core_pb2
from numalign.kube.pod_json import pod_from_json
from numalign.model.settings import PluginPresence
from numalign.replay.driver import Driver
from numalign.replay.expected import is_panic
from numalign.replay.plugins import Plugins
from numalign.replay.recordings import Json, RecordingError
from numalign.replay.services import Books, Services
from numalign.replay.words import (
    allocate_call_words,
    container_words,
    merge_words,
    plugin_call_words,
    pod_words,
)
from numalign.v1 import admission_pb2 as ad
from numalign.v1 import types_pb2 as pb

KUBELET_STATE_DIRECTORY = "/var/lib/kubelet"
"""The state directory that recorded start errors name."""


@dataclass(slots=True)
class _Pod:
    """An active pod. `started` says which containers were started and not removed."""

    message: core_pb2.Pod
    started: list[str] = field(default_factory=list)

    def containers(self) -> list[core_pb2.Container]:
        """Init containers first, in order."""
        return [*self.message.spec.init_containers, *self.message.spec.containers]

    def running(self, uid: str) -> list[pb.RunningContainer]:
        """The started containers that are not finished init containers."""
        finished = {
            c.name for c in self.message.spec.init_containers if c.restart_policy != "Always"
        }
        return [
            pb.RunningContainer(
                container_id=_container_id(uid, name), pod_uid=uid, container_name=name
            )
            for name in self.started
            if name not in finished
        ]


class History:
    """One scenario under way over one driver. `run` once."""

    def __init__(self, scenario: Json, driver: Driver, compatibility: Compatibility) -> None:
        self._scenario = scenario
        self._driver = driver
        self._compatibility = compatibility
        self._node: Json = scenario["node"]
        self._plugins = Plugins.of(self._node["devices"], PluginPresence.REGISTERED)
        self._active: dict[str, _Pod] = {}
        self._revision = 0
        self._over = False
        self._runners: Mapping[str, Callable[[Json], Awaitable[Json]]] = {
            "admit": self._admit,
            "start": self._start,
            "stop_container": self._stop_container,
            "remove": self._remove,
            "restart": self._restart,
            "device_health": self._device_health,
            "device_list": self._device_list,
            "plugin_disconnect": self._plugin_disconnect,
            "plugin_register": self._plugin_register,
        }

    async def run(self) -> Json:
        """Replay to the end; the results in the form of `expected.recorded_results`.

        A call that fails ends the history with `error` in place of the step's results.
        Raises RecordingError for a step that cannot be understood.
        """
        try:
            return await self._run()
        finally:
            await self._driver.close()

    async def _run(self) -> Json:
        refusal = await self._open()
        if refusal is not None:
            return {"construct_error": str(refusal), "construct_error_stage": refusal.stage}
        results: Json = {"steps": []}
        books = await self._services.books()
        if "effective_reserved_cpus" in self._scenario:
            results["effective_reserved_cpus"] = books.cpu.reserved_cpus
        results["initial_state"] = books.words
        for step in self._scenario["steps"]:
            if step["op"] not in self._runners:
                raise RecordingError(f"unknown step {step['op']}")
            try:
                results["steps"].append(await self._runners[step["op"]](step))
            except aio.AioRpcError as error:
                results["steps"].append({"error": f"{error.code().name}: {error.details()}"})
                break
            if self._over:
                break
        return results

    async def _open(self) -> StartError | None:
        """Start the services; the refusal if one refuses, with the recordings' path."""
        try:
            await self._driver.open(self._document())
        except StartError as error:
            directory = str(self._driver.state_directory)
            return StartError(error.stage, str(error).replace(directory, KUBELET_STATE_DIRECTORY))
        except ConfigError as error:
            return StartError("configuration", str(error))
        self._services = Services(self._driver)
        await self._services.reconcile(ready=True)
        return None

    def _document(self) -> dict[str, object]:
        return scenario_document(
            cast("ScenarioNode", {**self._node, "devices": self._plugins.section()}),
            self._scenario["feature_gates"],
            {"compatibility": self._compatibility.value},
        )

    async def _admit(self, step: Json) -> Json:
        pod = _Pod(pod_from_json(step["pod"]))
        return await self._judge(pod, step)

    async def _judge(self, pod: _Pod, entry: Json) -> Json:
        uid = pod.message.metadata.uid
        panic = is_panic(entry)
        before = await self._services.books() if panic else None
        # A kubelet asks its managers about an admitted pod with other resources to resize it.
        known = self._active.get(uid)
        is_resize = known is not None and known.message.spec != pod.message.spec
        ask = self._services.resize if is_resize else self._services.admit
        response = await ask(pod.message)
        self._revision = response.revision
        admitted = response.verdict == pb.VERDICT_ADMITTED
        recorded = bool(entry["expect"].get("admitted", False))
        books = await self._services.books()
        if before is not None:
            self._over = True
            await self._services.answer()
            kept = before.words != books.words
            return {
                "kept": response.already_admitted,
                "expect": {**_verdict(response), "nothing_kept": not kept},
            }
        results = {
            "kept": response.already_admitted,
            "hints": [merge_words(merge) for merge in response.explanation.merges],
            "allocate_calls": [
                allocate_call_words(call) for call in response.explanation.allocate_calls
            ],
            "plugin_calls": plugin_call_words(response.explanation.plugin_calls),
            "expect": {
                **_verdict(response),
                "message": response.message,
                **await self._pod_results(pod, books, response if admitted else None),
                **books.words,
            },
        }
        if admitted and recorded:
            pod.started = self._active[uid].started if uid in self._active else pod.started
            self._active[uid] = pod
        else:
            self._active.pop(uid, None)
        if admitted and not recorded:
            await self._services.release(uid)
        return results

    async def _pod_results(
        self, pod: _Pod, books: Books, response: ad.AdmitResponse | None = None
    ) -> Json:
        """What a pod holds: as an answer says, else as the books do."""
        if response is not None:
            return {
                "containers": {a.container: container_words(a) for a in response.allocations},
                **pod_words(response.pod_allocation),
            }
        uid = pod.message.metadata.uid
        return {
            "containers": {
                container.name: {
                    "affinity": await self._services.affinity(uid, container.name),
                    **books.holdings(uid, container.name),
                }
                for container in pod.containers()
            },
            **pod_words(books.pod_allocation(uid)),
        }

    async def _start(self, step: Json) -> Json:
        uid = step["pod_uid"]
        pod = self._active.get(uid)
        if pod is None:
            return await self._state()
        for container in pod.containers():
            await self._services.add_container(
                uid, container.name, _container_id(uid, container.name)
            )
            if container.name not in pod.started:
                pod.started.append(container.name)
        return await self._state(pod)

    async def _stop_container(self, step: Json) -> Json:
        uid = step["pod_uid"]
        await self._services.remove_container(_container_id(uid, step["container"]))
        return await self._state(self._active.get(uid))

    async def _remove(self, step: Json) -> Json:
        uid = step["pod_uid"]
        pod = self._active.pop(uid, None)
        if pod is not None:
            for name in pod.started:
                container_id = _container_id(uid, name)
                if step.get("call_remove_container"):
                    await self._services.give_back(uid, name, container_id)
                await self._services.remove_container(container_id)
            await self._services.release(uid)
        return await self._state()

    async def _restart(self, step: Json) -> Json:
        await self._driver.close()
        override: Json = step.get("node_override") or {}
        self._node = {**self._node, **override}
        early = step["plugins"] == "early"
        there = PluginPresence.REGISTERED if early else PluginPresence.ABSENT
        self._plugins = (
            Plugins.of(self._node["devices"], there)
            if "devices" in override
            else self._plugins.all_are(there)
        )
        refusal = await self._open()
        if refusal is not None:
            self._over = True
            return {"start_error": str(refusal), "start_error_stage": refusal.stage}
        if "start_error" in step:
            self._over = True
            return {}
        pods = self._active
        running = [
            container
            for uid, pod in pods.items()
            if step["containers_running"]
            for container in pod.running(uid)
        ]
        await self._services.reconcile(ready=False, running=running)
        readmit = await self._readmit(pods, step)
        results: Json = {"readmit": readmit}
        if self._over:
            return results
        if step["plugins"] == "late":
            await self._reload(self._plugins.all_are(PluginPresence.REGISTERED))
        await self._services.reconcile(
            ready=True, active=self._active, running=running, as_of_revision=self._revision
        )
        return {**results, **await self._state()}

    async def _readmit(self, pods: Mapping[str, _Pod], step: Json) -> list[Json]:
        recorded = {entry["pod_uid"]: entry for entry in step.get("readmit", ())}
        self._active = {}
        results = []
        for uid, pod in pods.items():
            if uid not in recorded:
                raise RecordingError(f"a restart does not say what became of pod {uid}")
            results.append({"pod_uid": uid, **await self._judge(pod, recorded[uid])})
            if self._over:
                break
        return results

    async def _device_health(self, step: Json) -> Json:
        resource, device = step["resource"], step["id"]
        await self._list(resource, self._plugins.with_health(resource, device, step["healthy"]))
        return await self._state()

    async def _device_list(self, step: Json) -> Json:
        resource = step["resource"]
        await self._list(resource, self._plugins.with_devices(resource, step["devices"]))
        return await self._state()

    async def _plugin_disconnect(self, step: Json) -> Json:
        gone = PluginPresence.DISCONNECTED
        await self._reload(self._plugins.with_presence(step["resource"], gone))
        return await self._state()

    async def _plugin_register(self, step: Json) -> Json:
        there = PluginPresence.REGISTERED
        await self._reload(self._plugins.with_presence(step["resource"], there))
        return await self._state()

    async def _list(self, resource: str, plugins: Plugins) -> None:
        """A plugin sends its list.

        To a kubelet the same list again is an event, which stores (DEV-14); a configuration
        that has not changed is none. So such a list goes there and back.
        """
        if plugins == self._plugins:
            await self._reload(plugins.with_health_turned(resource))
        await self._reload(plugins)

    async def _reload(self, plugins: Plugins) -> None:
        self._plugins = plugins
        await self._driver.reload(self._document())

    async def _state(self, pod: _Pod | None = None) -> Json:
        books = await self._services.books()
        of_pod = {} if pod is None else await self._pod_results(pod, books)
        return {"expect": {**of_pod, **books.words}}


def _verdict(response: ad.AdmitResponse) -> Json:
    return {"admitted": response.verdict == pb.VERDICT_ADMITTED, "reason": response.reason}


def _container_id(pod_uid: str, name: str) -> str:
    return f"{pod_uid}/{name}"
