"""What is sent, how often, and what comes of it."""

import io
import socket
import time
from email.utils import format_datetime
from datetime import datetime, timedelta, timezone
from uuid import UUID

import httpx
import pytest
from conftest import KEY, OPTIONS, Answer, Ask, FakeApi, error

from callboard import Callboard, CallboardError, File
from callboard.models import AddVoiceSamplesRequest, AgentCreate

CREDITS = {"balance_cents": 1}
ANN = AgentCreate(name="Ann", prompt="Be brief.")


def refusal(ask: Ask, *args: object, **kwargs: object) -> CallboardError:
    with pytest.raises(CallboardError) as caught:
        ask(*args, **kwargs)
    return caught.value


def test_a_request_shows_the_key_and_who_asks(api: FakeApi, ask: Ask) -> None:
    api.answers = [Answer(204)]
    ask("delete_agent", "a/b")
    [asked] = api.asked
    assert (asked.method, asked.path) == ("DELETE", "/v1/agents/a%2Fb")
    assert asked.headers["Authorization"] == f"Bearer {KEY}"
    assert asked.headers["User-Agent"].startswith("callboard-python/")
    assert asked.headers["Idempotency-Key"] is None


def test_an_error_has_what_the_api_says_of_it(api: FakeApi, ask: Ask) -> None:
    details = [{"param": "name", "code": "required", "message": "`name` is required"}]
    api.answers = [error(422, "validation_failed", "`name` is required", param="name", details=details)]
    caught = refusal(ask, "create_agent", body=ANN)
    assert caught.details == details
    assert (caught.status, caught.code, caught.param) == (422, "validation_failed", "name")
    assert (caught.message, caught.request_id) == ("`name` is required", "req_1")
    assert str(caught) == "422 validation_failed: `name` is required (request req_1)"
    assert len(api.asked) == 1


@pytest.mark.parametrize("body", ["<html>", ["error"], {"error": "no"}, None])
def test_an_error_of_a_proxy_is_one_without_a_code(api: FakeApi, ask: Ask, body: object) -> None:
    api.answers = [Answer(502, body)]
    caught = refusal(ask, "get_agent", "1", options={"max_retries": 0})
    assert (caught.status, caught.code, caught.message, caught.request_id) == (502, None, "Bad Gateway", "req_0")


def test_a_redirect_is_no_success(api: FakeApi, ask: Ask) -> None:
    api.answers = [Answer(302, headers={"Location": "/login"})]
    assert refusal(ask, "get_agent", "1").status == 302


def test_a_post_keeps_its_key_over_all_attempts(api: FakeApi, ask: Ask, waits: list[float]) -> None:
    api.answers = [
        error(503, "unavailable", Retry_After="1"),
        Answer(breaks="before"),
        error(409, "idempotency_in_progress"),
        error(429, "rate_limited", Retry_After="7"),
        Answer(502, "<html>"),
        Answer(504),
        error(422, "validation_failed"),
    ]
    assert refusal(ask, "create_agent", body=ANN, options={"max_retries": 6}).status == 422
    assert len({asked.body for asked in api.asked}) == 1
    [key] = set(api.keys())
    assert key and UUID(key).version == 4
    assert len(waits) == 6
    assert waits[0] == 1
    assert 0.5 <= waits[1] <= 1
    assert 1 <= waits[2] <= 2
    assert waits[3] == 7


def test_two_posts_have_two_keys(api: FakeApi, waits: list[float]) -> None:
    api.answers = [error(403, "forbidden")] * 2
    with Callboard(KEY, api.url, **OPTIONS) as callboard:
        for _ in range(2):
            with pytest.raises(CallboardError):
                callboard.create_agent(body=ANN)
    assert len(set(api.keys())) == 2


def test_a_key_of_your_own_is_kept(api: FakeApi, ask: Ask, waits: list[float]) -> None:
    api.answers = [error(503, "unavailable"), error(403, "forbidden")]
    refusal(ask, "create_agent", body=ANN, idempotency_key="order-17")
    assert api.keys() == ["order-17"] * 2


def test_a_file_is_sent_whole_each_time(api: FakeApi, ask: Ask) -> None:
    file = b"phone_number\n+15002340000\n" * 10_000
    api.answers = [error(503, "unavailable"), error(403, "forbidden")]
    refusal(ask, "import_dnc_entries", body=File(payload=io.BytesIO(file)))
    assert [asked.body for asked in api.asked] == [file, file]
    assert api.asked[0].headers["Content-Type"] == "text/csv"


def test_a_form_is_sent_whole_each_time(api: FakeApi, ask: Ask) -> None:
    api.answers = [Answer(breaks="before"), error(403, "forbidden")]
    samples = [File(payload=io.BytesIO(bytes(100_000)), file_name=name, mime_type="audio/wav") for name in "ab"]
    refusal(ask, "add_voice_samples", "1", body=AddVoiceSamplesRequest(samples=samples))
    assert len({asked.body for asked in api.asked}) == 1
    assert api.asked[0].body.count(bytes(100_000)) == 2


@pytest.mark.parametrize("breaks", ["before", "inside"])
def test_a_broken_connection_is_tried_again(api: FakeApi, ask: Ask, breaks: str) -> None:
    api.answers = [Answer(200, CREDITS, breaks=breaks), error(403, "forbidden")]
    assert refusal(ask, "get_credits").status == 403
    assert len(api.asked) == 2


def test_after_the_last_attempt_the_error_is_raised(api: FakeApi, ask: Ask, waits: list[float]) -> None:
    api.answers = [error(503, "unavailable")] * 9
    assert refusal(ask, "get_credits", options={"max_retries": 2}).code == "unavailable"
    assert (len(api.asked), len(waits)) == (3, 2)


def test_after_the_last_attempt_the_fault_is_raised(api: FakeApi, ask: Ask) -> None:
    api.answers = [Answer(breaks="before")] * 9
    with pytest.raises(httpx.RemoteProtocolError):
        ask("get_credits", options={"max_retries": 2})
    assert len(api.asked) == 3


@pytest.mark.parametrize(("status", "code"), [(409, "in_use"), (500, "internal_error"), (402, "insufficient_credits")])
def test_what_does_not_pass_is_not_tried_again(api: FakeApi, ask: Ask, status: int, code: str) -> None:
    api.answers = [error(status, code, Retry_After="0")]
    assert refusal(ask, "delete_agent", "1").code == code
    assert len(api.asked) == 1


def test_nobody_waits_longer_than_agreed(api: FakeApi, ask: Ask, waits: list[float]) -> None:
    api.answers = [error(429, "rate_limited", param="max_spend_cents_per_day", Retry_After="61")]
    caught = refusal(ask, "get_credits")
    assert (caught.param, caught.retry_after, caught.details) == ("max_spend_cents_per_day", 61, [])
    assert waits == []


def test_a_proxy_may_name_a_date(api: FakeApi, ask: Ask, waits: list[float]) -> None:
    date = format_datetime(datetime.now(timezone.utc) + timedelta(seconds=30), usegmt=True)
    api.answers = [error(503, "unavailable", Retry_After=date), error(429, "rate_limited", Retry_After="soon")]
    assert refusal(ask, "get_credits", options={"max_retries": 1}).status == 429
    assert 20 < waits[0] <= 30


def test_an_answer_that_does_not_come_is_a_timeout(api: FakeApi, ask: Ask) -> None:
    api.answers = [Answer(hangs=True)] * 2
    begun = time.monotonic()
    with pytest.raises(httpx.ReadTimeout):
        ask("get_credits", options={"timeout": 0.1, "max_retries": 1})
    assert len(api.asked) == 2
    assert 0.2 <= time.monotonic() - begun < 5


def test_nobody_there_is_a_fault(ask: Ask, waits: list[float]) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{closed.getsockname()[1]}"
        with pytest.raises(httpx.ConnectError):
            ask("get_credits", options={"base_url": url})
    assert len(waits) == 4


def test_a_wrong_address_is_no_fault_of_the_network(ask: Ask, waits: list[float]) -> None:
    with pytest.raises(httpx.UnsupportedProtocol):
        ask("get_credits", options={"base_url": "ftp://127.0.0.1"})
    assert waits == []
