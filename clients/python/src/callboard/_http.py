"""Sending: each request until it is answered, at most `max_retries` more times, and an error answer as an exception.

In the client, not in its transport: so a connection that breaks in the middle of an answer counts too, and the proxies
that the environment names are used.
"""

import random
import time
import uuid
from dataclasses import dataclass
from typing import Any

import anyio
import httpx

from ._errors import CallboardError

#: What a second attempt would not mend.
_OUR_FAULT = (httpx.UnsupportedProtocol, httpx.LocalProtocolError)


@dataclass(frozen=True)
class Retries:
    limit: int
    #: Whoever is asked to wait longer than so many seconds gets the error instead.
    longest_wait: float

    def wait_after(self, attempt: int, fault: CallboardError | httpx.TransportError) -> float | None:
        """Seconds until the next attempt, or None: that was the last one. The first attempt is number 0."""
        if attempt >= self.limit or isinstance(fault, _OUR_FAULT):
            return None
        # So that many clients do not come back at the same moment.
        wait = min(8.0, 0.5 * 2.0**attempt) * random.uniform(0.5, 1)
        if isinstance(fault, httpx.TransportError):
            return wait
        if not _is_for_now(fault):
            return None
        wait = max(wait, fault.retry_after or 0.0)
        return wait if wait <= self.longest_wait else None


def _is_for_now(error: CallboardError) -> bool:
    if error.status == 409:
        # Our first attempt, whose answer was lost, is still under way.
        return error.code == "idempotency_in_progress"
    # 502 and 504 are a proxy's.
    return error.status in (429, 502, 503, 504)


def _prepare(request: httpx.Request) -> None:
    """Makes it one that can be sent several times."""
    if request.method == "POST":
        # The server does it once, however often it arrives under the same key.
        request.headers.setdefault("Idempotency-Key", str(uuid.uuid4()))
    if isinstance(request.stream, httpx.SyncByteStream):
        # A file would be at its end the second time.
        request.read()


class Client(httpx.Client):
    def __init__(self, retries: Retries, **options: Any) -> None:
        super().__init__(**options)
        self._retries = retries

    def send(self, request: httpx.Request, **options: Any) -> httpx.Response:
        _prepare(request)
        for attempt in range(self._retries.limit + 1):
            try:
                response = super().send(request, **options)
                if response.is_success:
                    return response
                response.read()
                raise CallboardError(response)
            except (CallboardError, httpx.TransportError) as fault:
                wait = self._retries.wait_after(attempt, fault)
                if wait is None:
                    raise
            time.sleep(wait)
        raise AssertionError("the last attempt either answers or raises")


class AsyncClient(httpx.AsyncClient):
    def __init__(self, retries: Retries, **options: Any) -> None:
        super().__init__(**options)
        self._retries = retries

    async def send(self, request: httpx.Request, **options: Any) -> httpx.Response:
        _prepare(request)
        for attempt in range(self._retries.limit + 1):
            try:
                response = await super().send(request, **options)
                if response.is_success:
                    return response
                await response.aread()
                raise CallboardError(response)
            except (CallboardError, httpx.TransportError) as fault:
                wait = self._retries.wait_after(attempt, fault)
                if wait is None:
                    raise
            await anyio.sleep(wait)
        raise AssertionError("the last attempt either answers or raises")
