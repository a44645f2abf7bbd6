"""A campaign from its agent to its end, against a real server, with every webhook verified.

CALLBOARD_URL=http://127.0.0.1:8080 CALLBOARD_API_KEY=vk_test_... python flow.py

The server has to run with --dev: the receiver is on loopback.
"""

import os
import queue
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from uuid import UUID

from callboard import Callboard, CallboardError, Event, WebhookVerificationError, each, models, verify_webhook

#: By the last digit: a talk, busy, rejected. Other numbers than a second run's: each is called three times a day at most.
NUMBERS = [f"+1500{2_000_000 + time.time_ns() // 1000 % 700_000 * 10 + digit}" for digit in (0, 1, 4)]
SECONDS = float(os.environ.get("CALLBOARD_FLOW_SECONDS", "90"))


class Receiver(ThreadingHTTPServer):
    """Puts each webhook that verifies into `events`, and what does not into `refused`."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.secret = ""
        self.events: queue.Queue[Event] = queue.Queue()
        self.refused: list[str] = []


class Handler(BaseHTTPRequestHandler):
    server: Receiver

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        try:
            self.server.events.put(verify_webhook(body, self.headers, self.server.secret))
            self.send_response(204)
        except WebhookVerificationError as error:
            self.server.refused.append(str(error))
            self.send_response(401)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def receiver() -> Iterator[Receiver]:
    server = Receiver()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def main() -> None:
    with Callboard(os.environ["CALLBOARD_API_KEY"], os.environ["CALLBOARD_URL"]) as callboard, receiver() as server:
        run(callboard, server)


def run(callboard: Callboard, server: Receiver) -> None:
    deadline = time.monotonic() + SECONDS
    received: dict[UUID, Event] = {}

    def next_event() -> Event:
        try:
            event = server.events.get(timeout=max(0.0, deadline - time.monotonic()))
        except queue.Empty:
            raise TimeoutError(f"after {SECONDS} s only {[event.type for event in received.values()]}") from None
        received[event.id] = event
        return event

    try:
        callboard.create_agent(body=models.AgentCreate(name="", prompt="Be brief."))
    except CallboardError as error:
        assert (error.status, error.code, error.param) == (422, "validation_failed", "name"), error
        assert error.request_id and [fault["param"] for fault in error.details] == ["name"]
    else:
        raise AssertionError("an agent without a name")

    endpoint = callboard.create_webhook_endpoint(
        body=models.WebhookEndpointCreate(url=f"http://127.0.0.1:{server.server_port}/hook", event_types=["*"])
    )
    assert endpoint.secret
    server.secret = endpoint.secret
    agent = callboard.create_agent(
        body=models.AgentCreate(name="Ann", prompt="Be brief.", first_message="Hello {{first_name}}, this is Ann.")
    )
    campaign = callboard.create_campaign(body=models.CampaignCreate(name="Flow", agent_id=agent.id))
    contacts = [models.NewContact(phone_number=number, first_name="Zoë") for number in NUMBERS]
    added = callboard.add_campaign_contacts(str(campaign.id), body=models.AddCampaignContactsRequest(contacts=contacts))
    assert added.accepted == len(NUMBERS), added
    # The same request under the same key is done once, and answered the same.
    key = f"start-{campaign.id}"
    started = [callboard.start_campaign(str(campaign.id), idempotency_key=key) for _ in range(2)]
    assert started[0] == started[1]

    while next_event().type != "campaign.completed":
        pass
    # What happened before that may arrive after it: a retry, or the end of a talk.
    happened = {event.id for event in each(callboard.list_events, created_after=endpoint.created_at, limit=2)}
    assert len(happened) > 10, happened
    while happened - received.keys():
        next_event()
    assert not server.refused, server.refused

    campaign = callboard.get_campaign(str(campaign.id))
    assert campaign.status == "completed", campaign
    assert (campaign.counts.completed, campaign.counts.failed) == (1, 2), campaign.counts
    ended = [event.data for event in received.values() if isinstance(event.data, models.SessionEnded)]
    assert [session.to_number for session in ended] == [NUMBERS[0]], ended
    said = [turn.content for turn in ended[0].transcript]
    assert "Hello Zoë, this is Ann." in said, said
    failed = [event.data for event in received.values() if isinstance(event.data, models.SessionFailed)]
    assert sorted(session.end_reason for session in failed) == ["busy", "carrier_rejected"], failed

    callboard.delete_webhook_endpoint(str(endpoint.id))
    callboard.delete_campaign(str(campaign.id))
    callboard.delete_agent(str(agent.id))
    print(f"{len(received)} webhooks verified")


if __name__ == "__main__":
    main()
