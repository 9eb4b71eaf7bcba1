"""Devices that a kubelet on this node owns: observer mode, put together and run.

Separate from the other backends, so that only a process that observes loads this.
"""

from __future__ import annotations

from numalign.config.settings import Settings
from numalign.device.engine import DeviceEngine
from numalign.device.health import HealthOf
from numalign.device.inventory import Inventory
from numalign.device.kubelet.client import KubeletClient, open_kubelet
from numalign.device.kubelet.engine import KubeletDeviceEngine
from numalign.device.kubelet.judged import JudgedKubelet
from numalign.device.kubelet.looking import KubeletLook, PollTimes
from numalign.device.listing import Listed
from numalign.device.observer import OddDevices
from numalign.device.state import DeviceState
from numalign.device.static_plugins import StaticPlugins
from numalign.device.strategies import DeviceStrategies
from numalign.model.machine import Machine
from numalign.process.device_life import DeviceLife
from numalign.provider.ledger import Ledger
from numalign.telemetry.logs import get_logger

_log = get_logger("kubelet-devices")


class KubeletBackend:
    """One kubelet's pod resources socket."""

    def __init__(
        self,
        settings: Settings,
        machine: Machine,
        listed: Listed,
        health_of: HealthOf,
        odd_devices: OddDevices,
    ) -> None:
        """`listed` says what counts of a device; `odd_devices` hears of the rest."""
        self._settings = settings.device_plugins
        self._nodes = machine.node_ids()
        self._listed = listed
        self._odd_devices = odd_devices
        self._engine = KubeletDeviceEngine(
            machine,
            settings.gates,
            self.plugins,
            self.strategies(DeviceStrategies(allocate_in_place=False, health_of=health_of)),
            settings.device_plugins.retry_after,
        )

    @property
    def plugins(self) -> StaticPlugins:
        """Nobody: plugins are the kubelet's to ask."""
        return StaticPlugins(())

    def inventory(self) -> Inventory:
        """Nothing, until the kubelet has told."""
        return Inventory()

    def strategies(self, chosen: DeviceStrategies) -> DeviceStrategies:
        """As chosen: the engine waits for the kubelet in its own way."""
        return chosen

    @property
    def engine(self) -> KubeletDeviceEngine:
        """The engine that follows the kubelet."""
        return self._engine

    def attach(self, engine: DeviceEngine, ledger: Ledger[DeviceState]) -> DeviceLife:
        """Poll from now on, and look before every decision on a pod with devices."""
        path = self._settings.pod_resources_socket
        client = KubeletClient(open_kubelet(path))

        async def changed() -> None:
            await ledger.facts_changed(engine.noted)

        def heard(why: str | None) -> None:
            if why is None:
                _log.info("the kubelet tells of its devices again", socket=str(path))
            else:
                _log.warning("the kubelet does not tell of its devices", socket=str(path), why=why)

        look = KubeletLook(
            JudgedKubelet(client, self._listed, self._nodes, self._odd_devices.told),
            self._engine,
            changed,
            heard,
            PollTimes(interval=self._settings.poll_interval),
        )

        async def serving() -> None:
            look.start()

        async def close() -> None:
            await look.close()
            await client.close()

        return DeviceLife(serving=serving, close=close, look_at=look.look_at)
