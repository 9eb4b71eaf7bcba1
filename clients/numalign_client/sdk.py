"""Parts of one's own: hint providers and admit handlers.

A hint provider hands out resources of the node: subclass SimpleHintProvider (or
AsyncHintProvider), run a ProviderServer (AsyncProviderServer).

>>> class Licences(SimpleHintProvider):
...     name = "licences"
...     resources = ("example.com/licence",)
...
...     def hints(self, pod, container): ...
...     def allocate(self, pod, container, nodes): ...
>>> ProviderServer(Licences(), "/run/licences/hints.sock").run()

An admit handler says whether a pod may start: subclass SimpleAdmitHandler (or AsyncAdmitHandler),
run an AdmitHandlerServer (AsyncAdmitHandlerServer).

>>> class Quota(SimpleAdmitHandler):
...     name = "quota"
...
...     def judge(self, attributes): ...
>>> AdmitHandlerServer(Quota(), "/run/quota/admit.sock").run()
"""

try:
    from numalign_client.admit_handler.base import (
        Admit,
        AdmitAttributes,
        AsyncAdmitHandler,
        Defer,
        Judgement,
        Reject,
        SimpleAdmitHandler,
    )
    from numalign_client.admit_handler.server import (
        AdmitHandlerServer,
        AsyncAdmitHandlerServer,
    )
    from numalign_client.provider.amounts import requested
    from numalign_client.provider.asynchronous import AsyncHintProvider, AsyncProviderServer
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
except ModuleNotFoundError as error:
    if error.name is None or not error.name.startswith("grpc_health"):
        raise
    raise ImportError(
        "numalign_client.sdk needs the package grpcio-health-checking: pip install 'numalign[sdk]'",
        name=error.name,
    ) from error

__all__ = [
    "Admit",
    "AdmitAttributes",
    "AdmitHandlerServer",
    "AsyncAdmitHandler",
    "AsyncAdmitHandlerServer",
    "AsyncHintProvider",
    "AsyncProviderServer",
    "CannotAllocate",
    "CannotJudge",
    "Defer",
    "Grant",
    "HintProviderServicer",
    "HintValue",
    "Hints",
    "Judgement",
    "NotYet",
    "ProviderServer",
    "Reject",
    "SimpleAdmitHandler",
    "SimpleHintProvider",
    "SqliteStore",
    "StateFileError",
    "requested",
]
