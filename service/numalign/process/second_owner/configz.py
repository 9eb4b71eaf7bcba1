"""Asking the kubelet how it is configured, where the configuration says how to reach it.

Separate from `facts`, which only look at files: this one makes a call, to an address and with
credentials of the configuration's. Blocks.
"""

from __future__ import annotations

import json
import ssl
from collections.abc import Mapping
from urllib.request import HTTPRedirectHandler, HTTPSHandler, ProxyHandler, Request, build_opener

from numalign.config.settings import ConfigzSettings
from numalign.process.second_owner.facts import policies_of
from numalign.process.second_owner.rules import KubeletPolicy

_SECONDS = 2.0
_LARGEST = 1 << 20


def ask_kubelet(configz: ConfigzSettings) -> tuple[tuple[KubeletPolicy, ...], tuple[str, ...]]:
    """The policies that the kubelet runs with; or what kept it from answering.

    The token is read at each call, since it is renewed, and goes to this address alone: no
    redirection is followed and no proxy is used.
    """
    try:
        document = json.loads(_get(configz))
    except (OSError, ValueError) as error:
        return (), (f"{configz.url}: {error}",)
    configuration = document.get("kubeletconfig") if isinstance(document, Mapping) else None
    if not isinstance(configuration, Mapping):
        return (), (f"{configz.url}: is no kubelet's configuration",)
    return tuple(policies_of(configuration, configz.url)), ()


def _get(configz: ConfigzSettings) -> bytes:
    request = Request(configz.url)  # noqa: S310 - http or https, checked when it was read
    if configz.token is not None:
        token = configz.token.read_text(encoding="ascii").strip()
        request.add_unredirected_header("Authorization", f"Bearer {token}")
    context = ssl.create_default_context(cafile=configz.authority)
    opener = build_opener(ProxyHandler({}), HTTPSHandler(context=context), _NoRedirection())
    with opener.open(request, timeout=_SECONDS) as response:
        data: bytes = response.read(_LARGEST + 1)
    if len(data) > _LARGEST:
        raise ValueError("the answer is too long")
    return data


class _NoRedirection(HTTPRedirectHandler):
    def redirect_request(self, *_: object) -> None:
        """Leads nowhere: the answer stands as it is, an error."""
