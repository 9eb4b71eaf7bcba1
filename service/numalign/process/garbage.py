"""How often a process that serves looks for garbage in cycles.

Separate from `serve`, because it is about the interpreter and not about services.
"""

from __future__ import annotations

import gc

COLLECT_AFTER = (20_000, 20, 50)
"""Containers more than before, then younger collections; the interpreter's own is 700, 10, 10."""


def spare_collections() -> None:
    """Look less often, and never again at what a start has made. Called once, when all serve.

    A call makes some thousand objects and hardly any cycle among them; with the interpreter's
    own thresholds every call pays for several looks, and now and then for one at everything.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(*COLLECT_AFTER)
