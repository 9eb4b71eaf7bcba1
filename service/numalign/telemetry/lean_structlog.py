"""structlog without what its console colours would load.

structlog loads rich if it is installed: 5 MB and 70 ms that a service has no use for, and no
setting turns that off. An empty module in its place makes structlog do without; where rich is
loaded already (the command line), nothing is done. Separate so that the one import with a
side effect stands alone.
"""

from __future__ import annotations

import sys
from types import ModuleType

_PLACEHOLDER = ModuleType("rich")
sys.modules.setdefault("rich", _PLACEHOLDER)
try:
    import structlog
finally:
    if sys.modules["rich"] is _PLACEHOLDER:
        del sys.modules["rich"]

__all__ = ["structlog"]
