"""TCP listeners of the Admission service: the `listen` part of the `numalign` section.

Separate from the Unix sockets, which every service has. A listener without client certificates
would let anybody who reaches the node place pods, so there is no way to write one.
"""

from __future__ import annotations

from pathlib import Path

from numalign.config.serving import read_address
from numalign.config.settings import Address, ListenSettings, TlsFiles
from numalign.document.section import Section


def read_listeners(section: Section, key: str, base: Path) -> tuple[ListenSettings, ...]:
    """The listeners; files are taken from `base` unless they are absolute.

    Recorded are an address that is missing or given twice, and a missing file name.
    """
    listeners: list[ListenSettings] = []
    taken: set[Address] = set()
    for item in section.sections(key):
        item.refuse_unknown(("address", "tls"))
        if "address" not in item:
            item.wrong("address", "must be given")
        address = read_address(item, "address")
        tls = item.section("tls")
        tls.refuse_unknown(("cert", "key", "clientCA"))
        files = TlsFiles(
            certificate=base / tls.required_text("cert"),
            key=base / tls.required_text("key"),
            client_authority=base / tls.required_text("clientCA"),
        )
        if address is None:
            continue
        if address in taken:
            item.wrong("address", "is given twice")
        taken.add(address)
        listeners.append(ListenSettings(address=address, tls=files))
    return tuple(listeners)
