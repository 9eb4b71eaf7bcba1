"""`python -m tests.integration.other_agent <uid> <gid> <directory>`: a stranger tries everything.

Becomes the user, then calls every socket of a node that runs below `directory`, each by what it
is there for. Prints, as JSON, the status code of each call by socket.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import grpc
from tests.integration.node_document import pod

from numalign.config.settings import CORE_SERVICES, Service
from numalign.kube.podresources.v1 import api_pb2 as resources
from numalign.kube.podresources.v1 import api_pb2_grpc as resources_grpc
from numalign.v1 import admission_pb2 as ad
from numalign.v1 import admission_pb2_grpc as ad_grpc
from numalign.v1 import control_pb2 as ct
from numalign.v1 import control_pb2_grpc as ct_grpc
from numalign.v1 import hint_provider_pb2 as hp
from numalign.v1 import hint_provider_pb2_grpc as hp_grpc
from numalign.v1 import topology_pb2 as tm
from numalign.v1 import topology_pb2_grpc as tm_grpc

CALL_SECONDS = 60.0
POD_RESOURCES = "pod-resources"


def code_of(call: Any, request: Any) -> str:
    try:
        call(request, timeout=CALL_SECONDS)
    except grpc.RpcError as error:
        failed: Any = error
        return str(failed.code().name)
    return "OK"


def calls(channels: dict[str, grpc.Channel]) -> dict[str, str]:
    admission = ad_grpc.AdmissionStub(channels[Service.ADMISSION])
    topology = tm_grpc.TopologyManagerStub(channels[Service.TOPOLOGY])
    lister = resources_grpc.PodResourcesListerStub(channels[POD_RESOURCES])
    found = {
        "admission Admit": code_of(admission.Admit, ad.AdmitRequest(pod=pod("other", gpus=0))),
        "admission Release": code_of(admission.Release, ad.ReleaseRequest(pod_uid="other")),
        "topology GetPolicy": code_of(topology.GetPolicy, tm.GetPolicyRequest()),
        "pod-resources List": code_of(lister.List, resources.ListPodResourcesRequest()),
    }
    for service in (Service.CPU, Service.MEMORY, Service.DEVICE):
        stub = hp_grpc.HintProviderStub(channels[service])
        found[f"{service} GetInfo"] = code_of(stub.GetInfo, hp.GetInfoRequest())
    for service in CORE_SERVICES:
        control = ct_grpc.ControlStub(channels[service])
        found[f"{service} GetStatus"] = code_of(control.GetStatus, ct.GetStatusRequest())
    return found


def main() -> None:
    uid, gid, directory = int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3])
    os.setgroups([])
    os.setgid(gid)
    os.setuid(uid)
    names = [*Service, POD_RESOURCES]
    channels = {
        name: grpc.insecure_channel(f"unix:{directory / 'run' / f'{name}.sock'}") for name in names
    }
    sys.stdout.write(json.dumps(calls(channels)) + "\n")
    for channel in channels.values():
        channel.close()


if __name__ == "__main__":
    main()
