"""Webhooks: whether one is from Callboard, and what it says."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from email.message import Message
from typing import Any
from uuid import UUID

from dateutil.parser import isoparse
from standardwebhooks import Webhook
from standardwebhooks import WebhookVerificationError as Refused

from ._generated.events import EVENT_DATA, EventData


class WebhookVerificationError(Exception):
    """It is not from Callboard, or not for this secret, or older than five minutes: answer 401."""


@dataclass(frozen=True)
class Event:
    #: The same each time the event is sent: keep those you have processed.
    id: UUID
    #: Such as `session.ended`.
    type: str
    tenant_id: UUID
    created_at: datetime
    #: By type: `models.SessionEnded` of a `session.ended`. What a newer server says that this package cannot read: as it came.
    data: EventData | dict[str, Any]

    @classmethod
    def from_dict(cls, envelope: Mapping[str, Any]) -> "Event":
        """The same for one of a list: `Event.from_dict(listed.to_dict())`."""
        return cls(
            id=UUID(envelope["id"]),
            type=envelope["type"],
            tenant_id=UUID(envelope["tenant_id"]),
            created_at=isoparse(envelope["created_at"]),
            data=_data(envelope["type"], envelope["data"]),
        )


def _data(type_: str, data: dict[str, Any]) -> EventData | dict[str, Any]:
    try:
        return EVENT_DATA[type_].from_dict(data)
    except (KeyError, TypeError, ValueError):
        # A type, or the value of a choice, that is newer. Refused, it would be sent again and again.
        return data


def verify_webhook(body: bytes | str, headers: Mapping[str, str] | Message, secret: str) -> Event:
    """The event in a webhook that is from Callboard, else WebhookVerificationError.

    `body` is the body as it arrived, not parsed and serialized again. `headers` are the request's, in any case. `secret`
    is the endpoint's, `whsec_` included; a wrong one that is not even base64 is a ValueError. While a secret is being
    rotated the old and the new one both verify.
    """
    try:
        webhook = Webhook(secret)
    except Exception as error:
        raise ValueError("the secret is not one of Callboard's: whsec_ and base64") from error
    try:
        webhook.verify(body, dict(headers), json_parse=False)
    except (Refused, ValueError) as error:
        # A ValueError: what is no base64, no text, no pair of version and signature.
        raise WebhookVerificationError(str(error)) from error
    return Event.from_dict(json.loads(body))

