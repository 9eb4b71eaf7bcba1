"""Settings as the document that they could have come from, with every default written out.

Separate from the commands because it is a pure function that tests hold against the loader:
reading the document again gives the same settings.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from numalign.config.placement import placement_document
from numalign.config.settings import (
    Address,
    AdmissionSettings,
    AdmitHandlerSettings,
    ConfigzSettings,
    DevicePluginSettings,
    DraSettings,
    LimitSettings,
    ListenSettings,
    MachineFile,
    MachineInline,
    MachineRoot,
    MachineSource,
    Settings,
)
from numalign.machine.schema import document_of_machine
from numalign.model.quantity import Quantity
from numalign.model.settings import StaticDevice, StaticResource


def settings_document(settings: Settings) -> dict[str, Any]:
    """The KubeletConfiguration with its `numalign` section that says what `settings` do.

    Kubelet keys that decide nothing stay as they were written. Gates are those that differ
    from their defaults, since the others are the version's business.
    """
    document: dict[str, Any] = {
        **settings.kubelet,
        "topologyManagerPolicy": settings.topology.policy,
        "topologyManagerScope": settings.topology.scope,
        "topologyManagerPolicyOptions": dict(settings.topology.policy_options),
        "cpuManagerPolicy": settings.cpu.policy,
        "cpuManagerPolicyOptions": dict(settings.cpu.policy_options),
        "memoryManagerPolicy": settings.memory.policy,
        "reservedMemory": [
            {"numaNode": entry.numa_node, "limits": _quantities(entry.limits)}
            for entry in settings.memory.reserved_memory
        ],
    }
    if settings.cpu.reserved_cpus:
        document["reservedSystemCPUs"] = settings.cpu.reserved_cpus
    document["numalign"] = _extension(settings)
    return document


SECRET_KEYS = ("staticPodURLHeader",)
"""Keys of the KubeletConfiguration whose values are credentials."""


def without_secrets(document: dict[str, Any]) -> dict[str, Any]:
    """The document without values that let somebody in anywhere. Names of files stay."""
    return {key: value for key, value in document.items() if key not in SECRET_KEYS}


def _extension(settings: Settings) -> dict[str, Any]:
    reservation: dict[str, str] = _quantities(settings.memory.node_allocatable_reservation)
    if settings.cpu.reserved_milli_cpu is not None:
        reservation["cpu"] = Quantity.from_milli(settings.cpu.reserved_milli_cpu).canonical()
    return {
        "compatibility": settings.compatibility.value,
        "validation": settings.validation.value,
        "runtimeDirectory": str(settings.runtime_directory),
        "stateDirectory": str(settings.state_directory),
        "sockets": _without_none(
            {
                "mode": f"{settings.sockets.mode:04o}",
                "owner": settings.sockets.owner,
                "group": settings.sockets.group,
                "allow": {
                    "uids": list(settings.sockets.allow_uids),
                    "gids": list(settings.sockets.allow_gids),
                },
            }
        ),
        "limits": _limits(settings.limits),
        "listen": [_listener(listener) for listener in settings.listen],
        "providerDirectories": [str(path) for path in settings.provider_directories],
        **(
            {}
            if settings.providers_registry is None
            else {"providersRegistry": str(settings.providers_registry)}
        ),
        "secondOwner": settings.second_owner.value,
        "hostRoot": str(settings.host_root),
        "kubeletConfigz": _configz(settings.kubelet_configz),
        **({} if settings.pod_resources is None else _pod_resources(settings.pod_resources)),
        "admission": _admission(settings.admission),
        "endpoints": {service.value: str(path) for service, path in settings.endpoints.items()},
        "machine": _machine(settings.machine),
        "devices": [_resource(resource) for resource in settings.devices],
        "devicePlugins": _device_plugins(settings.device_plugins),
        "dra": _dra(settings.dra),
        "placement": placement_document(settings.placement),
        "nodeAllocatableReservation": reservation,
        "providers": [
            {
                "name": provider.name,
                "endpoint": str(provider.socket),
                "timeout": _seconds(provider.timeout),
                "failurePolicy": provider.failure_policy.value,
            }
            for provider in settings.providers
        ],
        "providerTimeout": _seconds(settings.provider_timeout),
        "queueDepth": settings.queue_depth,
        "historyLength": settings.history_length,
        "metrics": _without_none(
            {
                "address": _address(settings.metrics.address),
                "services": {
                    service.value: _address(address)
                    for service, address in settings.metrics.services.items()
                }
                or None,
            }
        ),
        "journal": {"size": settings.journal.size},
        "log": {"level": settings.log.level.value, "format": settings.log.format.value},
        "owner": settings.owner,
    }


def _limits(limits: LimitSettings) -> dict[str, Any]:
    return {
        "connections": limits.connections,
        "calls": limits.calls,
        "handshakeTimeout": _seconds(limits.handshake_timeout),
        "requestTimeout": _seconds(limits.request_timeout),
        "callTimeout": _seconds(limits.call_timeout),
        "streamIdleTimeout": _seconds(limits.stream_idle_timeout),
    }


def _pod_resources(socket: Path) -> dict[str, Any]:
    return {"podResources": {"socket": str(socket)}}


def _device_plugins(plugins: DevicePluginSettings) -> dict[str, Any]:
    return {
        "mode": plugins.mode.value,
        "directory": str(plugins.directory),
        "pluginsRegistry": _path(plugins.plugins_registry) or "",
        "reportDeadline": _seconds(plugins.report_deadline),
        "retryAfter": _seconds(plugins.retry_after),
        "podResourcesSocket": str(plugins.pod_resources_socket),
        "pollInterval": _seconds(plugins.poll_interval),
    }


def _dra(dra: DraSettings) -> dict[str, Any]:
    return {
        "enabled": dra.enabled,
        "pluginsRegistry": str(dra.plugins_registry),
        "callTimeout": _seconds(dra.call_timeout),
        "retryAfter": _seconds(dra.retry_after),
        "numaHints": dra.numa_hints,
    }


def _admission(admission: AdmissionSettings) -> dict[str, Any]:
    return _without_none(
        {
            "chain": admission.chain.value,
            "node": _path(admission.node_file),
            "declaredFeatures": list(admission.declared_features),
            "nodeFs": str(admission.node_fs),
            "imageFs": _path(admission.image_fs),
            "handlers": [_handler(handler) for handler in admission.handlers],
            "shutdown": _without_none(
                {"source": admission.shutdown.source.value, "bus": admission.shutdown.bus}
            ),
        }
    )


def _handler(handler: AdmitHandlerSettings) -> dict[str, Any]:
    place = handler.place
    return {
        "name": handler.name,
        "endpoint": str(handler.socket),
        **({} if place is None else {place.position.value: place.handler}),
        "timeout": _seconds(handler.timeout),
        "failurePolicy": handler.failure_policy.value,
    }


def _path(path: Path | None) -> str | None:
    return None if path is None else str(path)


def _configz(configz: ConfigzSettings | None) -> dict[str, Any] | None:
    if configz is None:
        return None
    files = {"tokenFile": configz.token, "caFile": configz.authority}
    return {"url": configz.url, **{key: str(path) for key, path in files.items() if path}}


def _listener(listener: ListenSettings) -> dict[str, Any]:
    return {
        "address": _address(listener.address),
        "tls": {
            "cert": str(listener.tls.certificate),
            "key": str(listener.tls.key),
            "clientCA": str(listener.tls.client_authority),
        },
    }


def _machine(source: MachineSource) -> dict[str, Any]:
    match source:
        case MachineRoot(path):
            return {"root": str(path)}
        case MachineFile(path):
            return {"file": str(path)}
        case MachineInline(machine):
            return document_of_machine(machine)


def _resource(resource: StaticResource) -> dict[str, Any]:
    return _without_none(
        {
            "resource": resource.resource,
            "devices": [_device(device) for device in resource.devices],
            "preferred_allocation": resource.preferred_allocation.value,
            "allocate_error": resource.allocate_error,
            "plugin": resource.plugin.value,
        }
    )


def _device(device: StaticDevice) -> dict[str, Any]:
    return _without_none(
        {
            "id": device.id,
            "numa_nodes": None if device.numa_nodes is None else list(device.numa_nodes),
            "healthy": device.healthy,
        }
    )


def _quantities(amounts: Mapping[str, Quantity]) -> dict[str, str]:
    return {name: amount.canonical() for name, amount in amounts.items()}


def _seconds(seconds: float) -> str:
    return f"{seconds:.9f}".rstrip("0").rstrip(".") + "s"


def _address(address: Address | None) -> str | None:
    if address is None:
        return None
    host = f"[{address.host}]" if ":" in address.host else address.host
    return f"{host}:{address.port}"


def _without_none(mapping: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in mapping.items() if value is not None}
