"""A client of Callboard, the self-hosted service for voice-agent calls."""

from ._client import AsyncCallboard, Callboard
from ._errors import CallboardError
from ._generated.types import UNSET, File, Unset
from ._lists import each, each_async
from ._webhooks import Event, WebhookVerificationError, verify_webhook

__all__ = [
    "UNSET",
    "AsyncCallboard",
    "Callboard",
    "CallboardError",
    "Event",
    "File",
    "Unset",
    "WebhookVerificationError",
    "each",
    "each_async",
    "verify_webhook",
]
