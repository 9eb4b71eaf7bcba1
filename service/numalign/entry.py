"""Where the console commands begin: a package that is not installed is named with its extra.

Separate from the commands, which need those packages to be read at all. `pip install numalign` is
the client alone; the commands come along and must say so.
"""

from __future__ import annotations

import sys
from importlib import import_module

_OWN = frozenset({"numalign", "numalign_agent", "numalign_client"})


def main() -> None:
    """The `numalign` command."""
    run("numalign", "numalign.cli.main", extra="service")


def run(command: str, module: str, *, extra: str) -> None:
    """Run `main` of `module`.

    Where a package is missing, say on standard error which and how to install it; exit with 1.
    """
    try:
        import_module(module).main()
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        if not missing or missing in _OWN:
            raise
        sys.exit(
            f"{command}: the package that {missing} comes with is not installed: "
            f"pip install 'numalign[{extra}]'"
        )
