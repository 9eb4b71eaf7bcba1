"""Whether the containers of a pod are what its manifest says, from their start to their end.

What every deployment is held to; what one of them does besides is in its own tests.
"""

from __future__ import annotations

from tests.e2e.cri import RUNNING
from tests.e2e.deploy.kubelet import Kubelet

_CAPABILITIES = {"CHOWN": 0, "DAC_OVERRIDE": 1, "FOWNER": 3}


async def assert_as_written(kubelet: Kubelet) -> None:
    """As the kernel has it: user, group, capabilities, privileges, what can be written."""
    pod = kubelet.spec["securityContext"]
    for name, container in kubelet.written.items():
        status = await kubelet.run_inside(name, "cat", "/proc/1/status")
        fields = dict(line.split(":\t", 1) for line in status.splitlines())
        context = {**pod, **container["securityContext"]}
        added = context["capabilities"].get("add", ())
        expected = sum(1 << _CAPABILITIES[each] for each in added)

        assert set(fields["Uid"].split()) == {str(context["runAsUser"])}, name
        assert set(fields["Gid"].split()) == {str(context["runAsGroup"])}, name
        assert int(fields["CapBnd"], 16) == expected, name
        assert fields["NoNewPrivs"] == "1", name
        mounts = await kubelet.run_inside(name, "cat", "/proc/mounts")
        written = {line.split()[1]: line.split()[3].split(",")[0] for line in mounts.splitlines()}
        assert written["/"] == "ro", name
        for mount in container["volumeMounts"]:
            mode = "ro" if mount.get("readOnly") else "rw"
            place = await kubelet.run_inside(name, "readlink", "-f", mount["mountPath"])
            assert written[place.strip()] == mode, (name, mount)


async def assert_probes_pass(kubelet: Kubelet) -> None:
    """Those that are asked as long as a container runs."""
    for name in kubelet.written:
        for kind in ("livenessProbe", "readinessProbe"):
            await kubelet.until_passed(name, kind)


async def assert_all_end_when_told(kubelet: Kubelet) -> None:
    """Every container runs, and ends by itself within the time that the pod gives it."""
    for name in kubelet.written:
        status = await kubelet.runtime.status(kubelet.containers[name])
        assert status.state == RUNNING, name
    codes = await kubelet.exit_codes(kubelet.spec["terminationGracePeriodSeconds"])

    assert set(codes.values()) == {0}, codes
