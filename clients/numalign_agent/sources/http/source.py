"""The HTTP source: asks a URL again and again (CFG-10, CFG-13)."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from numalign.telemetry.logs import get_logger
from numalign_agent.manifests.manifest import READ_LIMIT
from numalign_agent.sources.http.answers import Answers
from numalign_agent.sources.port import Deliver
from numalign_agent.sources.reading import Reading

if TYPE_CHECKING:
    from aiohttp import ClientSession, StreamReader

NAME = "http"
TIMEOUT = 10.0
"""Seconds that one answer may take."""

_FAILURES_LOGGED = 4

_log = get_logger("agent.sources.http")


class HttpSource:
    """Delivers the static pods at `url`, asked every `every` seconds with `headers`."""

    name = NAME

    def __init__(
        self,
        url: str,
        node_name: str,
        headers: Mapping[str, Sequence[str]] | None = None,
        every: float = 20.0,
    ) -> None:
        self._url = url
        self._headers = [
            (name, value) for name, values in (headers or {}).items() for value in values
        ]
        self._every = every
        self._answers = Answers(url, node_name)
        self._failures = 0
        self._problem = ""

    def problems(self) -> Mapping[str, str]:
        """Why the URL gives no pods, or none that can be used."""
        return {self._url: self._problem} if self._problem else {}

    async def run(self, deliver: Deliver) -> None:
        """Ask at start and then every so often; until cancelled."""
        from aiohttp import ClientSession, ClientTimeout  # noqa: PLC0415 - only if there is a URL

        timeout = ClientTimeout(total=TIMEOUT)
        async with ClientSession(timeout=timeout, headers=self._headers) as session:
            while True:
                reading = await self._ask(session)
                self._note(reading)
                if reading.pods is not None:
                    await deliver(reading.pods)
                await asyncio.sleep(self._every)

    async def _ask(self, session: ClientSession) -> Reading:
        from aiohttp import ClientError  # noqa: PLC0415 - as above

        try:
            async with session.get(self._url) as response:
                body = await _read(response.content)
                status, phrase = response.status, response.reason or ""
        except TimeoutError:
            return Reading(error=f"{self._url}: no answer within {TIMEOUT:g} s")
        except (ClientError, OSError, ValueError) as error:
            return Reading(error=f"{self._url}: {str(error) or type(error).__name__}")
        return await asyncio.to_thread(self._answers.take, status, phrase, body)

    def _note(self, reading: Reading) -> None:
        """Log what went wrong: loudly at first, quietly when it goes on (CFG-13)."""
        self._problem = reading.error or self._answers.unusable
        if reading.error is None:
            if self._failures:
                _log.info("the URL answers again", url=self._url, failures=self._failures)
            self._failures = 0
            return
        self._failures += 1
        if self._failures < _FAILURES_LOGGED:
            _log.warning("cannot read pods", url=self._url, why=reading.error)
        elif self._failures == _FAILURES_LOGGED:
            _log.warning(
                "cannot read pods; logged at level debug from here on",
                url=self._url,
                why=reading.error,
            )
        else:
            _log.debug("cannot read pods", url=self._url, why=reading.error)


async def _read(content: StreamReader) -> bytes:
    """The body, as far as one byte beyond what is taken."""
    body = bytearray()
    async for chunk in content.iter_any():
        body += chunk
        if len(body) > READ_LIMIT:
            break
    return bytes(body)
