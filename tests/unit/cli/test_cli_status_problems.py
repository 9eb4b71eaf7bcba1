"""`numalign status` says which configuration placed a pod, and what the pod has lost since."""

from __future__ import annotations

from tests.unit.cli.conftest import Run, Scripted
from tests.unit.cli.test_cli_services import RECORD, UP, start_all

from numalign.v1 import admission_pb2 as ad
from numalign.v1 import control_pb2 as ct
from numalign.v1 import types_pb2 as pb


def test_status_names_configurations_and_problems(run: Run, scripted: Scripted) -> None:
    start_all(scripted)
    record = pb.AdmissionRecord()
    record.CopyFrom(RECORD)
    record.config_generation = 41
    record.problems.append('cpu: container c: CPUs "2-3": "3" reserved now')
    status = ct.GetStatusResponse()
    status.CopyFrom(UP)
    status.config_generation = 42
    scripted(
        "admission",
        ListAdmissions=ad.ListAdmissionsResponse(admissions=[record], revision=12),
        GetStatus=status,
    )

    output = run("status").stdout

    assert "Guaranteed  41" in output
    assert "safe  42" in output
    assert 'problem: shop/web: cpu: container c: CPUs "2-3": "3" reserved now' in output


def test_status_names_held_devices_that_are_not_healthy(run: Run, scripted: Scripted) -> None:
    start_all(scripted)
    device = pb.UnhealthyDevice(
        pod_uid=RECORD.pod_uid, container="c", resource="example.com/gpu", id="g0", health="Unknown"
    )
    scripted(
        "admission",
        ListAdmissions=ad.ListAdmissionsResponse(
            admissions=[RECORD], revision=12, unhealthy_devices=[device]
        ),
        GetStatus=UP,
    )

    assert "Unknown: shop/web container c: example.com/gpu g0" in run("status").stdout
