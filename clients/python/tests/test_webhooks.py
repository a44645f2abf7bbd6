"""Which webhooks are let in, and as what."""

import base64
import hashlib
import hmac
import json
import time
from datetime import datetime, timezone
from typing import Any
from uuid import UUID

import pytest

from callboard import Event, WebhookVerificationError, models, verify_webhook

OLD, NEW = (f"whsec_{base64.b64encode(byte * 32).decode()}" for byte in (b"o", b"n"))
ID = "01a1fa94-5aa9-734c-8dd9-8983a0dd6d24"
SESSION = "01a1fa94-0000-734c-8dd9-8983a0dd6d24"


def body_of(type_: str = "session.started", data: Any = None) -> bytes:
    data = data or {"session_id": SESSION, "started_at": "2026-11-20T20:09:49.005Z"}
    envelope = {"id": ID, "type": type_, "tenant_id": SESSION, "created_at": "2026-11-20T20:09:49.005Z", "data": data}
    return json.dumps(envelope).encode()


def sign(body: bytes, secret: str, at: int, id: str = ID) -> str:
    key = base64.b64decode(secret.removeprefix("whsec_"))
    return "v1," + base64.b64encode(hmac.digest(key, f"{id}.{at}.".encode() + body, hashlib.sha256)).decode()


def headers_of(body: bytes, *secrets: str, age: int = 0) -> dict[str, str]:
    at = int(time.time()) - age
    signatures = " ".join(sign(body, secret, at) for secret in secrets)
    return {"webhook-id": ID, "webhook-timestamp": str(at), "webhook-signature": signatures}


def test_a_webhook_is_a_typed_event() -> None:
    body = body_of()
    event = verify_webhook(body, headers_of(body, OLD), OLD)
    assert (event.id, event.type) == (UUID(ID), "session.started")
    assert event.created_at == datetime(2026, 11, 20, 20, 9, 49, 5000, timezone.utc)
    assert isinstance(event.data, models.SessionStarted)
    assert str(event.data.session_id) == SESSION


def test_an_event_of_a_list_is_a_typed_one_too() -> None:
    body = body_of()
    listed = models.Event.from_dict(json.loads(body))
    assert Event.from_dict(listed.to_dict()) == verify_webhook(body, headers_of(body, OLD), OLD)


def test_headers_may_be_written_in_any_case_and_the_body_be_a_text() -> None:
    body = body_of()
    headers = {name.title(): value for name, value in headers_of(body, OLD).items()}
    assert verify_webhook(body.decode(), headers, OLD).type == "session.started"


def test_a_type_of_a_newer_server_comes_as_it_is() -> None:
    body = body_of("session.whistled", {"tune": "Für Elise"})
    assert verify_webhook(body, headers_of(body, OLD), OLD).data == {"tune": "Für Elise"}


def test_a_choice_of_a_newer_server_comes_as_it_is() -> None:
    data = {"campaign_id": SESSION, "paused_at": "2026-11-20T20:09:49.005Z", "reason": "manual"}
    for reason, shape in (("manual", models.CampaignPaused), ("full_moon", dict)):
        body = body_of("campaign.paused", data | {"reason": reason})
        assert isinstance(verify_webhook(body, headers_of(body, OLD), OLD).data, shape)


def test_a_field_of_a_newer_server_is_no_harm() -> None:
    body = body_of(data={"session_id": SESSION, "started_at": "2026-11-20T20:09:49.005Z", "tune": "Für Elise"})
    assert isinstance(verify_webhook(body, headers_of(body, OLD), OLD).data, models.SessionStarted)


@pytest.mark.parametrize("secret", [OLD, NEW])
def test_during_a_rotation_either_secret_verifies(secret: str) -> None:
    body = body_of()
    assert verify_webhook(body, headers_of(body, NEW, OLD), secret).type == "session.started"


def refused(body: bytes, headers: dict[str, str], secret: str = OLD) -> str:
    with pytest.raises(WebhookVerificationError) as caught:
        verify_webhook(body, headers, secret)
    return str(caught.value)


def test_another_body_or_secret_is_refused() -> None:
    body = body_of()
    headers = headers_of(body, OLD)
    assert refused(body.replace(b"started", b"stopped", 1), headers) == "No matching signature found"
    assert refused(body, headers, NEW) == "No matching signature found"
    assert refused(body, headers_of(body, NEW)) == "No matching signature found"
    assert refused(body, headers | {"webhook-id": SESSION}) == "No matching signature found"


def test_one_that_is_too_old_or_too_new_is_refused() -> None:
    body = body_of()
    verify_webhook(body, headers_of(body, OLD, age=290), OLD)
    assert refused(body, headers_of(body, OLD, age=310)) == "Message timestamp too old"
    assert refused(body, headers_of(body, OLD, age=-310)) == "Message timestamp too new"
    later = headers_of(body, OLD, age=310) | {"webhook-timestamp": str(int(time.time()))}
    assert refused(body, later) == "No matching signature found"


@pytest.mark.parametrize("missing", ["webhook-id", "webhook-timestamp", "webhook-signature"])
def test_one_without_a_header_is_refused(missing: str) -> None:
    body = body_of()
    headers = headers_of(body, OLD)
    del headers[missing]
    assert refused(body, headers) == "Missing required headers"


@pytest.mark.parametrize("signature", ["v1", "v1,", "v1,?", "v1,a", "v2,AAAA", "x,y,z", ","])
def test_what_is_no_signature_is_refused(signature: str) -> None:
    body = body_of()
    refused(body, headers_of(body, OLD) | {"webhook-signature": signature})


def test_what_is_no_text_or_no_time_is_refused() -> None:
    refused(b"\xff", headers_of(b"\xff", OLD))
    for timestamp in ("", "now", "nan", "1e400", "-1"):
        refused(body_of(), headers_of(body_of(), OLD) | {"webhook-timestamp": timestamp})


@pytest.mark.parametrize("secret", ["", "whsec_", "whsec_a"])
def test_what_is_no_secret_is_said_at_once(secret: str) -> None:
    with pytest.raises(ValueError, match="whsec_"):
        verify_webhook(body_of(), headers_of(body_of(), OLD), secret)
