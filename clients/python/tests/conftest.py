"""A server that speaks as the API does, and says what the test wants to hear."""

import asyncio
import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from callboard import AsyncCallboard, Callboard

KEY = "vk_test_0123456789"
#: Reading the system's certificates would take longer than the rest of a test.
OPTIONS: dict[str, Any] = {"verify": False}


@dataclass
class Answer:
    status: int = 200
    body: Any = None
    headers: dict[str, str] = field(default_factory=dict)
    #: Break the connection: before the answer, or in the middle of its body.
    breaks: str | None = None
    #: Answer only when the test is over.
    hangs: bool = False


def error(status: int, code: str, message: str = "no", details: Any = None, param: Any = None, **headers: str) -> Answer:
    more = {name: value for name, value in (("details", details), ("param", param)) if value}
    body = {"code": code, "message": message, "request_id": "req_1"} | more
    return Answer(status, {"error": body}, {name.replace("_", "-"): value for name, value in headers.items()})


@dataclass
class Asked:
    method: str
    path: str
    headers: Message
    body: bytes


class FakeApi:
    """Gives `answers` one after the other, and keeps what it was `asked`."""

    def __init__(self) -> None:
        self.answers: list[Answer] = []
        self.asked: list[Asked] = []
        self.over = threading.Event()
        api = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                body = b"".join(self.chunks()) if "Transfer-Encoding" in self.headers else self.whole()
                api.asked.append(Asked(self.command, self.path, self.headers, body))
                answer = api.answers.pop(0) if api.answers else error(500, "internal_error", "not in the script")
                if answer.hangs:
                    api.over.wait()
                if answer.breaks == "before":
                    return
                sent = b"" if answer.body is None else json.dumps(answer.body).encode()
                self.send_response(answer.status)
                for name, value in {"X-Request-Id": "req_0", **answer.headers}.items():
                    self.send_header(name, value)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(sent)))
                self.end_headers()
                self.wfile.write(sent[: len(sent) // 2] if answer.breaks == "inside" else sent)

            def whole(self) -> bytes:
                return self.rfile.read(int(self.headers.get("Content-Length", 0)))

            def chunks(self) -> Iterator[bytes]:
                while size := int(self.rfile.readline(), 16):
                    yield self.rfile.read(size)
                    self.rfile.readline()
                self.rfile.readline()

            do_POST = do_PATCH = do_DELETE = do_GET

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def keys(self) -> list[str | None]:
        return [asked.headers["Idempotency-Key"] for asked in self.asked]


@pytest.fixture
def api() -> Iterator[FakeApi]:
    api = FakeApi()
    thread = threading.Thread(target=api.server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield api
    api.over.set()
    api.server.shutdown()
    thread.join()
    api.server.server_close()


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The waits between attempts, none of which takes any time."""
    waits: list[float] = []

    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    monkeypatch.setattr("callboard._http.time.sleep", waits.append)
    monkeypatch.setattr("callboard._http.anyio.sleep", sleep)
    return waits


Ask = Callable[..., Any]


@pytest.fixture(params=["sync", "async"])
def ask(request: pytest.FixtureRequest, api: FakeApi, waits: list[float]) -> Ask:
    """Calls one operation of a new client, whose `options` are given; each test runs with both kinds of client."""

    async def wait_for(operation: str, options: dict[str, Any], args: Any, kwargs: Any) -> Any:
        async with AsyncCallboard(KEY, **(OPTIONS | {"base_url": api.url} | options)) as callboard:
            return await getattr(callboard, operation)(*args, **kwargs)

    def ask(operation: str, *args: Any, options: dict[str, Any] | None = None, **kwargs: Any) -> Any:
        if request.param == "async":
            return asyncio.run(wait_for(operation, options or {}, args, kwargs))
        with Callboard(KEY, **(OPTIONS | {"base_url": api.url} | (options or {}))) as callboard:
            return getattr(callboard, operation)(*args, **kwargs)

    return ask
