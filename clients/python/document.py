"""What `generate` does with the document besides the generator.

document.py without-defaults DOCUMENT         prints it, for the generator
document.py events DOCUMENT > events.py       says which schema the data of each event has: the generator leaves webhooks out
"""

import json
import sys
from pathlib import Path
from typing import Any


def without_defaults(schema: Any, is_schema: bool = True) -> Any:
    """The generator's models would send each default that they know: a patch of one field would set its neighbours back."""
    if isinstance(schema, list):
        return [without_defaults(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    # Fields may be called so, and the answer to all other statuses is.
    says_a_type = is_schema and not {"type", "enum", "$ref", "anyOf", "oneOf", "allOf"}.isdisjoint(schema)
    kept = {name: value for name, value in schema.items() if not (says_a_type and name == "default")}
    return {name: without_defaults(value, name != "properties") for name, value in kept.items()}


def with_bytes(document: dict[str, Any]) -> dict[str, Any]:
    """Files and session descriptions are handed over as they are: the generator has no other type for what is not JSON."""
    for item in document["paths"].values():
        for operation in item.values():
            bodies = [operation.get("requestBody", {}), *operation["responses"].values()]
            for content in (body.get("content", {}) for body in bodies):
                for kind in {"text/csv", "application/sdp"} & content.keys():
                    content[kind]["schema"] = {"type": "string", "format": "binary"}
    return document


def with_one_body(document: dict[str, Any]) -> dict[str, Any]:
    """Of a file that may be of several kinds the first is sent: the generator cannot tell files of two kinds apart."""
    for item in document["paths"].values():
        for operation in item.values():
            content = operation.get("requestBody", {}).get("content", {})
            for kind in list(content)[1:]:
                if kind != "application/json" and not kind.startswith("multipart/"):
                    del content[kind]
    return document


def with_own_lists(document: dict[str, Any]) -> dict[str, Any]:
    """Two fields that are the same list of values would give their items one name."""
    schemas = document["components"]["schemas"]
    lists = {f"#/components/schemas/{name}": schema for name, schema in schemas.items() if schema.get("type") == "array"}

    def own(schema: Any) -> Any:
        if isinstance(schema, list):
            return [own(one) for one in schema]
        if not isinstance(schema, dict):
            return schema
        of_all = lists.get(schema.get("$ref", ""))
        if of_all is None:
            return {name: own(value) for name, value in schema.items()}
        rest = {name: value for name, value in schema.items() if name != "$ref"}
        return own({name: value for name, value in of_all.items() if name != "title"} | rest)

    return {name: own(part) for name, part in document.items()}


def envelopes(document: dict[str, Any]) -> dict[str, str]:
    """The schema of each event, by its type."""
    bodies = {event: item["post"]["requestBody"]["content"] for event, item in document["webhooks"].items()}
    return {event: body["application/json"]["schema"]["$ref"].rsplit("/", 1)[1] for event, body in bodies.items()}


def with_any_events(document: dict[str, Any]) -> dict[str, Any]:
    """An event of a list is an envelope around anything: a union of all types would refuse those of a newer server."""
    schemas = document["components"]["schemas"]
    names = envelopes(document).values()
    any_event = dict(schemas[next(iter(names))], title="Event", description="What an event looks like.")
    any_type = {"type": "string", "description": "One of the event types."}
    any_data = {"type": "object", "additionalProperties": True, "description": "Its shape depends on `type`."}
    any_event["properties"] = any_event["properties"] | {"type": any_type, "data": any_data}
    schemas["Event"] = any_event
    for name in names:
        del schemas[name]
    del document["webhooks"]
    return document


def events(document: dict[str, Any]) -> str:
    schemas = document["components"]["schemas"]
    names = {
        event: schemas[envelope]["properties"]["data"]["$ref"].rsplit("/", 1)[1]
        for event, envelope in envelopes(document).items()
    }
    classes = sorted(set(names.values()))
    entries = ", ".join(f"{event!r}: {name}" for event, name in names.items())
    return f'''"""The data of events, by their types."""
from .models import {", ".join(classes)}
EventData = {" | ".join(classes)}
EVENT_DATA: dict[str, type[EventData]] = {{{entries}}}
'''


task, path = sys.argv[1:]
document = json.loads(Path(path).read_text())
print(events(document) if task == "events" else json.dumps(without_defaults(with_own_lists(with_any_events(with_one_body(with_bytes(document)))))))
