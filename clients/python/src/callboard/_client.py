"""The way in: `Callboard`, and `AsyncCallboard` for asyncio."""

from importlib.metadata import version
from typing import Any

from . import _http
from ._generated.api import AsyncOperations, Operations
from ._generated.client import AuthenticatedClient

_USER_AGENT = f"callboard-python/{version('callboard')}"


def _options(api_key: str, timeout: float | None, given: dict[str, Any]) -> dict[str, Any]:
    headers = {"Authorization": f"Bearer {api_key}", "User-Agent": _USER_AGENT, **given.pop("headers", {})}
    return {"timeout": timeout, **given, "headers": headers}


class Callboard(Operations):
    """One workspace and environment of a server, those of the key. Its methods are the API's operations.

    `timeout`: seconds for each attempt to connect, to write and to read. The server answers within 30, but what it asks
    others for, as in simulations and tests, may take 120: give such calls a client of their own.
    `max_retries`: attempts after the first one, on 429, 502, 503, 504 and network faults.
    `longest_wait`: an answer whose `Retry-After` has more seconds is raised instead.
    `http_options`: whatever else `httpx.Client` takes, such as `verify` or `proxy`.
    """

    def __init__(
        self,
        api_key: str,
        base_url: str,
        *,
        timeout: float | None = 60.0,
        max_retries: int = 4,
        longest_wait: float = 60.0,
        **http_options: Any,
    ) -> None:
        #: For what the operations do not cover, such as event streams: the same key, retries and errors.
        self.http = _http.Client(
            _http.Retries(max_retries, longest_wait), base_url=base_url, **_options(api_key, timeout, http_options)
        )
        super().__init__(AuthenticatedClient(base_url, token=api_key).set_httpx_client(self.http))

    def close(self) -> None:
        self.http.close()

    def __enter__(self) -> "Callboard":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class AsyncCallboard(AsyncOperations):
    """`Callboard` whose operations are awaited."""

    def __init__(
        self,
        api_key: str,
        base_url: str,
        *,
        timeout: float | None = 60.0,
        max_retries: int = 4,
        longest_wait: float = 60.0,
        **http_options: Any,
    ) -> None:
        self.http = _http.AsyncClient(
            _http.Retries(max_retries, longest_wait), base_url=base_url, **_options(api_key, timeout, http_options)
        )
        super().__init__(AuthenticatedClient(base_url, token=api_key).set_async_httpx_client(self.http))

    async def close(self) -> None:
        await self.http.aclose()

    async def __aenter__(self) -> "AsyncCallboard":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()
