"""How often an admission waits for the disk, counted from outside with strace."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

STRACE = shutil.which("strace")

WORKLOAD = """
import asyncio, os, pathlib, sys
from numalign.store.admission_store import AdmissionRow, AdmissionStore
from numalign.store.database import Database
from numalign.store.provider_store import ProviderStore

async def main(directory, shared, synced, admissions):
    names = ["cpu", "memory", "device"]
    if shared:
        one = Database.open(directory, "node", report=print)
        databases = dict.fromkeys([*names, "topology"], one)
    else:
        databases = {n: Database.open(directory, n, report=print) for n in [*names, "topology"]}
    providers = [ProviderStore(databases[n], n, durable=not shared) for n in names]
    store = AdmissionStore(databases["topology"])
    # The first write to a new log also syncs its header.
    for provider in providers:
        await provider.save(b"", synced=True)
    await store.commit(AdmissionRow(pod_uid="0", admission_id="0", owner="", pod=b"", record=b""))
    os.path.exists("/begin-admissions")
    for i in range(1, admissions + 1):
        await asyncio.gather(
            *(
                p.prepare(str(i), str(i), b"x" * 2000, b"y" * 2000, synced=synced)
                for p in providers
            )
        )
        row = AdmissionRow(pod_uid=str(i), admission_id=str(i), owner="", pod=b"p", record=b"{}")
        await store.commit(row)
        await asyncio.gather(*(p.settle(str(i), restore=False) for p in providers))
    os.path.exists("/end-admissions")

layout = sys.argv[2]
asyncio.run(
    main(pathlib.Path(sys.argv[1]), layout == "shared", layout != "recorded", int(sys.argv[3]))
)
os._exit(0)
"""


@pytest.mark.skipif(STRACE is None, reason="strace is not installed")
@pytest.mark.parametrize(
    ("layout", "per_admission"),
    [
        pytest.param("shared", 1, id="one-file"),
        pytest.param("apart", 4, id="a-file-each"),
        pytest.param("recorded", 1, id="a-file-each-what-the-record-has"),
    ],
)
def test_syncs_per_admission(tmp_path: Path, layout: str, per_admission: int) -> None:
    admissions = 20
    trace = tmp_path / "trace"
    command = [STRACE or "", "-f", "-o", str(trace), "-e", "trace=fsync,fdatasync,stat,newfstatat"]
    command += [sys.executable, "-c", WORKLOAD, str(tmp_path / "state"), layout, str(admissions)]
    subprocess.run(command, check=True, timeout=100)
    text = trace.read_text()
    between = text.split("/begin-admissions", 1)[1].split("/end-admissions", 1)[0]

    assert len(re.findall(r"f(?:data)?sync\(", between)) == admissions * per_admission
