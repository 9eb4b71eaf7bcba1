"""From a decoded document to settings: the one place where both halves of it meet.

Pure: what lies outside the document comes in through `Defaults`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from numalign.config.defaults import Defaults
from numalign.config.eviction_memory import threshold_quantity
from numalign.config.extension import Extension, read_extension
from numalign.config.kubelet_document import EXTENSION, KubeletDocument, read_kubelet_document
from numalign.config.placement import without_effect
from numalign.config.reservation import Reservation, stated_reservation, summed_reservation
from numalign.config.serving import OTHERS_WRITE
from numalign.config.settings import Settings, SocketSettings, Validation
from numalign.config.validation import kubelet_errors, reserved_cpus_errors
from numalign.document.problems import Problems
from numalign.document.section import Section
from numalign.model.cpu_set import CpuSet
from numalign.model.settings import CpuSettings, MemorySettings


def settings_from_document(document: object, defaults: Defaults) -> Settings:
    """The settings that a KubeletConfiguration with a `numalign` section describes.

    `document` None is an empty one. Raises DocumentError (a ConfigError) naming every
    problem: types and unknown keys always, and under `numalign.validation: kubelet`, the
    default, what the kubelet's validation refuses.
    """
    problems = Problems()
    section = Section(document, "", problems)
    kubelet = read_kubelet_document(section)
    extension = read_extension(section.section(EXTENSION), defaults)
    for sentence in (
        kubelet_errors(kubelet)
        if extension.validation is Validation.KUBELET
        else reserved_cpus_errors(kubelet.reserved_system_cpus)
    ):
        problems.say(sentence)
    problems.refuse()
    reservation = _reservation(kubelet, extension, defaults)
    settings = Settings(
        topology=kubelet.topology,
        cpu=CpuSettings(
            policy=kubelet.cpu_policy,
            policy_options=kubelet.cpu_policy_options,
            reserved_cpus=kubelet.reserved_system_cpus,
            reserved_milli_cpu=reservation.milli_cpu,
        ),
        memory=MemorySettings(
            policy=kubelet.memory_policy,
            reserved_memory=kubelet.reserved_memory,
            node_allocatable_reservation=reservation.memory,
        ),
        gates=kubelet.gates,
        compatibility=extension.compatibility,
        validation=extension.validation,
        machine=extension.machine,
        devices=extension.devices,
        device_plugins=extension.device_plugins,
        dra=extension.dra,
        placement=extension.placement,
        providers=extension.providers,
        provider_timeout=extension.provider_timeout,
        queue_depth=extension.queue_depth,
        history_length=extension.history_length,
        owner=extension.owner,
        runtime_directory=extension.runtime_directory,
        state_directory=extension.state_directory,
        sockets=extension.sockets,
        limits=extension.limits,
        listen=extension.listen,
        endpoints=extension.endpoints,
        pod_resources=extension.pod_resources,
        admission=extension.admission,
        provider_directories=extension.provider_directories,
        providers_registry=extension.providers_registry,
        second_owner=extension.second_owner,
        host_root=extension.host_root,
        kubelet_configz=extension.kubelet_configz,
        metrics=extension.metrics,
        journal=extension.journal,
        log=extension.log,
        kubelet=_kubelet_keys(document),
        warnings=(*kubelet.warnings, *_socket_warnings(extension.sockets)),
    )
    return replace(settings, warnings=(*settings.warnings, *without_effect(settings)))


def _reservation(kubelet: KubeletDocument, extension: Extension, defaults: Defaults) -> Reservation:
    """What the node keeps, as stated or summed up from keys that were checked before."""
    reserved_cpus = len(CpuSet.parse(kubelet.reserved_system_cpus))
    if extension.stated_reservation is not None:
        return stated_reservation(extension.stated_reservation, reserved_cpus)
    eviction = threshold_quantity(
        kubelet.memory_threshold, lambda: defaults.memory_capacity(extension.machine)
    )
    return summed_reservation(
        kubelet.kube_reserved, kubelet.system_reserved, eviction, reserved_cpus
    )


def _kubelet_keys(document: object) -> dict[str, object]:
    if not isinstance(document, Mapping):
        return {}
    return {key: value for key, value in document.items() if key != EXTENSION}


def _socket_warnings(sockets: SocketSettings) -> tuple[str, ...]:
    if not sockets.mode & OTHERS_WRITE:
        return ()
    return (f"{EXTENSION}.sockets.mode: {sockets.mode:04o} lets every user of the node connect",)
