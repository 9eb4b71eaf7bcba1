"""Where the kubelet says how it is configured: the `kubeletConfigz` part of the section."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlsplit

from numalign.config.settings import ConfigzSettings
from numalign.document.section import Section, shown


def read_configz(section: Section, key: str, base: Path) -> ConfigzSettings | None:
    """The settings; None where `key` is not given. Files are taken from `base`.

    Recorded are an URL that is not of HTTP, and a token that would travel in the clear.
    """
    if key not in section:
        return None
    inner = section.section(key)
    inner.refuse_unknown(("url", "tokenFile", "caFile"))
    url = inner.required_text("url")
    token, authority = inner.text("tokenFile"), inner.text("caFile")
    scheme = _scheme(url)
    if url and scheme not in {"http", "https"}:
        inner.wrong("url", f"must be an http or https URL, not {shown(url)}")
    if token and scheme == "http":
        inner.wrong("tokenFile", "goes with an https URL only")
    return ConfigzSettings(
        url=url,
        token=base / token if token else None,
        authority=base / authority if authority else None,
    )


def _scheme(url: str) -> str:
    try:
        parts = urlsplit(url)
    except ValueError:
        return ""
    return parts.scheme if parts.hostname else ""
