"""The README's receiver can be copied, and its links lead somewhere also where the package is shown alone."""

import http.client
import re
import threading
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from test_webhooks import NEW, OLD, body_of, headers_of

README = Path(__file__).parent.parent / "README.md"


def receiver() -> Any:
    """Its class, not started."""
    [block] = [code for code in re.findall(r"```python\n(.*?)```", README.read_text(), re.S) if "class Receiver" in code]
    code, _ = block.split("\nThreadingHTTPServer(")
    names: dict[str, Any] = {}
    exec(code, names)
    return names["Receiver"]


def test_it_lets_in_what_verifies(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("WEBHOOK_SECRET", OLD)
    with ThreadingHTTPServer(("127.0.0.1", 0), receiver()) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        statuses = []
        for secret in (OLD, NEW):
            body = body_of()
            connection = http.client.HTTPConnection("127.0.0.1", server.server_port)
            connection.request("POST", "/", body, headers_of(body, secret))
            statuses.append(connection.getresponse().status)
            connection.close()
        server.shutdown()
        thread.join()
    assert statuses == [204, 401]
    assert capsys.readouterr().out == "session.started\n"


def test_no_link_needs_the_repository() -> None:
    targets = re.findall(r"\]\(([^)]*)\)", README.read_text())
    assert targets
    assert [target for target in targets if not target.startswith(("https://", "#"))] == []
