"""The process that `test_crash` kills: admissions one after another, each one acknowledged.

Usage: crash_child.py STATE_DIRECTORY shared|apart SEED. Prints `ack UID` after each commit
point and `start N` once it has recovered N admissions.
"""

from __future__ import annotations

import asyncio
import json
import random
import sys
from pathlib import Path

from numalign.model.ids import AdmissionId, PodUid
from numalign.store.admission_store import AdmissionRow, AdmissionStore
from numalign.store.database import Database
from numalign.store.provider_store import ProviderStore

PROVIDERS = ("cpu", "memory")


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


class Node:
    """The stores of one node, and each provider's state: the sorted uids that it holds."""

    def __init__(self, directory: Path, shared: bool) -> None:
        def open_database(name: str) -> Database:
            return Database.open(directory, name, report=say)

        if shared:
            one = open_database("node")
            self.databases = dict.fromkeys((*PROVIDERS, "topology"), one)
        else:
            self.databases = {name: open_database(name) for name in (*PROVIDERS, "topology")}
        self.stores = {
            name: ProviderStore(self.databases[name], name, durable=not shared)
            for name in PROVIDERS
        }
        self.admissions = AdmissionStore(self.databases["topology"])
        self.held: dict[str, set[str]] = {}

    async def recover(self) -> set[str]:
        """Presumed abort: what has no row is undone. Returns the admitted uids."""
        found = await self.admissions.load_all()
        committed = {row.admission_id for row in found.admissions}
        for name, store in self.stores.items():
            for open_ in reversed((await store.load()).prepared):
                await store.settle(open_.admission_id, restore=open_.admission_id not in committed)
            self.held[name] = set(json.loads((await store.load()).payload or b"[]"))
        return {row.pod_uid for row in found.admissions}

    async def prepare(self, name: str, uid: str) -> None:
        before = json.dumps(sorted(self.held[name])).encode()
        self.held[name].add(uid)
        after = json.dumps(sorted(self.held[name])).encode()
        await self.stores[name].prepare(AdmissionId(f"a-{uid}"), PodUid(uid), before, after)

    async def settle(self, name: str, uid: str, *, restore: bool) -> None:
        if restore:
            self.held[name].discard(uid)
        await self.stores[name].settle(AdmissionId(f"a-{uid}"), restore=restore)

    async def close(self) -> None:
        for database in self.databases.values():
            await database.close()


async def admit(node: Node, uid: str, accept: bool) -> None:
    await asyncio.gather(*(node.prepare(name, uid) for name in PROVIDERS))
    if accept:
        row = AdmissionRow(
            pod_uid=PodUid(uid), admission_id=AdmissionId(f"a-{uid}"), owner="", pod=b"", record=b""
        )
        await node.admissions.commit(row)
        say(f"ack {uid}")
    await asyncio.gather(*(node.settle(name, uid, restore=not accept) for name in PROVIDERS))


async def main(directory: Path, shared: bool, seed: int) -> None:
    node = Node(directory, shared)
    admitted = await node.recover()
    say(f"start {len(admitted)}")
    choose = random.Random(seed)
    for number in range(100_000):
        await admit(node, f"{seed}-{number}", accept=choose.random() < 0.7)


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), sys.argv[2] == "shared", int(sys.argv[3])))
