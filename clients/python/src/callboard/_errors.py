"""What the API answers instead of success."""

from datetime import datetime, timezone
from email.utils import parsedate_to_datetime
from typing import Any

import httpx


class CallboardError(Exception):
    """An answer other than success. docs/api.md of the server lists the codes and what each asks of you."""

    status: int
    #: None if it was not Callboard that answered, but a proxy in front of it.
    code: str | None
    message: str
    #: The field that is wrong, such as `template.body`; None if it is not about one.
    param: str | None
    #: Of `validation_failed`: all that is wrong, each with `code`, `message` and, if it is about a field, `param`.
    details: list[dict[str, str]]
    #: By it the operator finds the request in the log.
    request_id: str | None
    #: Seconds that the API asks to wait.
    retry_after: float | None
    #: The answer itself, read to its end.
    response: httpx.Response

    def __init__(self, response: httpx.Response) -> None:
        error = _error_in(response)
        self.status = response.status_code
        self.code = error.get("code")
        self.message = error.get("message") or response.reason_phrase
        self.param = error.get("param")
        self.details = error.get("details", [])
        self.request_id = error.get("request_id") or response.headers.get("X-Request-Id")
        self.retry_after = _retry_after(response)
        self.response = response
        super().__init__(f"{self.status} {self.code or 'without a code'}: {self.message} (request {self.request_id})")


def _error_in(response: httpx.Response) -> dict[str, Any]:
    try:
        error = response.json()["error"]
    except (ValueError, KeyError, TypeError):
        return {}
    return error if isinstance(error, dict) else {}


def _retry_after(response: httpx.Response) -> float | None:
    value = response.headers.get("Retry-After", "")
    try:
        return float(value)
    except ValueError:
        pass
    try:
        # A proxy may answer with a date.
        return (parsedate_to_datetime(value) - datetime.now(timezone.utc)).total_seconds()
    except (ValueError, TypeError):
        return None
