"""Looking for garbage less often: what a start made is left alone, new cycles are found."""

from __future__ import annotations

import subprocess
import sys

SCRIPT = """
import gc, weakref
from numalign.process.garbage import COLLECT_AFTER, spare_collections

class Node:
    pass

spare_collections()
assert gc.isenabled() and gc.get_threshold() == COLLECT_AFTER
assert gc.get_freeze_count() > 1000
node = Node()
node.itself = node
gone = weakref.ref(node)
del node
kept = [[] for _ in range(2 * COLLECT_AFTER[0])]
print(gone() is None)
"""


def test_what_a_start_made_is_spared_and_new_cycles_are_not() -> None:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, text=True, timeout=60, check=True
    )

    assert done.stdout == "True\n"
