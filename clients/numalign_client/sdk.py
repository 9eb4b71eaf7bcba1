"""Writing a hint provider of one's own: subclass SimpleHintProvider, run a ProviderServer.

>>> class Licences(SimpleHintProvider):
...     name = "licences"
...     resources = ("example.com/licence",)
...
...     def hints(self, pod, container): ...
...     def allocate(self, pod, container, nodes): ...
>>> ProviderServer(Licences(), "/run/licences/hints.sock").run()
"""

from numalign_client.provider.amounts import requested
from numalign_client.provider.base import (
    CannotAllocate,
    CannotJudge,
    Grant,
    Hints,
    HintValue,
    NotYet,
    SimpleHintProvider,
)
from numalign_client.provider.server import ProviderServer
from numalign_client.provider.servicer import HintProviderServicer
from numalign_client.provider.store import SqliteStore, StateFileError

__all__ = [
    "CannotAllocate",
    "CannotJudge",
    "Grant",
    "HintProviderServicer",
    "HintValue",
    "Hints",
    "NotYet",
    "ProviderServer",
    "SimpleHintProvider",
    "SqliteStore",
    "StateFileError",
    "requested",
]
