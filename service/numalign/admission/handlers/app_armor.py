"""The AppArmor handler (ARM-1 to ARM-5)."""

from __future__ import annotations

from numalign.admission.handlers.admit_pod import AdmitPod, AppArmorProfile
from numalign.admission.handlers.verdict import ADMITTED, Verdict, rejected

REASON = "AppArmor"

_PREFIX = "Cannot enforce AppArmor: "
_ANNOTATION = "container.apparmor.security.beta.kubernetes.io/"
_PENDING = "Pending"
_UNCONFINED, _LOCALHOST, _RUNTIME_DEFAULT = "Unconfined", "Localhost", "RuntimeDefault"
_ANNOTATED = {
    "unconfined": AppArmorProfile(_UNCONFINED),
    "runtime/default": AppArmorProfile(_RUNTIME_DEFAULT),
}
_ANNOTATED_LOCALHOST = "localhost/"


def decide_app_armor(pod: AdmitPod, host_enabled: bool) -> Verdict:
    """Whether the profiles of the pod can be enforced on a host with or without AppArmor.

    Only a pod whose phase is exactly Pending is looked at (ARM-1).
    """
    if pod.phase != _PENDING or not _is_needed(pod):
        return ADMITTED
    if not host_enabled:
        return rejected(REASON, f"{_PREFIX}AppArmor is not enabled on the host")
    for name, own in pod.app_armor:
        profile = own or _annotated(pod, name) or pod.pod_app_armor
        if profile is not None and profile.type == _LOCALHOST:
            localhost = profile.localhost_profile
            if localhost is None or not localhost.strip():
                return rejected(
                    REASON, f'{_PREFIX}invalid empty AppArmor profile name: "{_dump(profile)}"'
                )
    return ADMITTED


def _is_needed(pod: AdmitPod) -> bool:
    """Whether the pod asks for a profile (ARM-2).

    Of several annotations the first by name decides; the kubelet takes any of them.
    """
    profiles = (pod.pod_app_armor, *(profile for _, profile in pod.app_armor))
    if any(profile is not None and profile.type != _UNCONFINED for profile in profiles):
        return True
    annotated = sorted(key for key in pod.annotations if key.startswith(_ANNOTATION))
    return bool(annotated) and pod.annotations[annotated[0]] != "unconfined"


def _annotated(pod: AdmitPod, container: str) -> AppArmorProfile | None:
    """The profile that a container's annotation names; None for none, or another value (ARM-4)."""
    value = pod.annotations.get(_ANNOTATION + container, "")
    if value.startswith(_ANNOTATED_LOCALHOST):
        return AppArmorProfile(_LOCALHOST, value.removeprefix(_ANNOTATED_LOCALHOST))
    return _ANNOTATED.get(value)


def _dump(profile: AppArmorProfile) -> str:
    shown = "nil" if profile.localhost_profile is None else f"*{profile.localhost_profile}"
    return f"&AppArmorProfile{{Type:{profile.type},LocalhostProfile:{shown},}}"
