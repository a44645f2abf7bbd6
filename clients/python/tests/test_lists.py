"""Lists, from the first page to the last."""

import asyncio
from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from conftest import KEY, OPTIONS, Answer, FakeApi, error

from callboard import AsyncCallboard, Callboard, CallboardError, each, each_async


ID = "01a1fa94-5aa9-734c-8dd9-8983a0dd6d24"


def page(*names: str, cursor: str | None = None) -> Answer:
    events = [{"id": ID, "type": name, "tenant_id": ID, "created_at": "2026-11-20T20:09:49.005Z", "data": {}} for name in names]
    return Answer(200, {"data": events, "has_more": cursor is not None, "next_cursor": cursor})


def queries(api: FakeApi) -> list[dict[str, list[str]]]:
    return [parse_qs(urlsplit(asked.path).query) for asked in api.asked]


def names(api: FakeApi, kind: str, **arguments: Any) -> list[str]:
    async def wait_for() -> list[str]:
        async with AsyncCallboard(KEY, api.url, **OPTIONS) as callboard:
            return [event.type_ async for event in each_async(callboard.list_events, **arguments)]

    if kind == "async":
        return asyncio.run(wait_for())
    with Callboard(KEY, api.url, **OPTIONS) as callboard:
        return [event.type_ for event in each(callboard.list_events, **arguments)]


@pytest.mark.parametrize("kind", ["sync", "async"])
def test_all_pages_are_read_with_the_same_arguments(api: FakeApi, kind: str) -> None:
    api.answers = [page("a", "b", cursor="2+/="), page(cursor="3"), page("c")]
    assert names(api, kind, limit=2, order="asc") == ["a", "b", "c"]
    asked = {"limit": ["2"], "order": ["asc"]}
    assert queries(api) == [asked, asked | {"cursor": ["2+/="]}, asked | {"cursor": ["3"]}]


@pytest.mark.parametrize("kind", ["sync", "async"])
def test_an_empty_list_is_one_page(api: FakeApi, kind: str) -> None:
    api.answers = [page()]
    assert names(api, kind) == []


def test_a_page_is_asked_for_when_it_is_needed(api: FakeApi) -> None:
    api.answers = [page("a", cursor="2"), error(403, "forbidden")]
    with Callboard(KEY, api.url, **OPTIONS) as callboard:
        found: Iterator[Any] = each(callboard.list_events)
        assert next(found).type_ == "a"
        assert len(api.asked) == 1
        with pytest.raises(CallboardError):
            next(found)
