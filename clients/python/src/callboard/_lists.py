"""Lists, page after page."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from typing import ParamSpec, Protocol, TypeVar

from ._generated.types import Unset

P = ParamSpec("P")
Item = TypeVar("Item")
Item_co = TypeVar("Item_co", covariant=True)


class Page(Protocol[Item_co]):
    @property
    def data(self) -> Sequence[Item_co]: ...
    @property
    def has_more(self) -> bool: ...
    @property
    def next_cursor(self) -> str | None | Unset: ...


def each(operation: Callable[P, Page[Item]], *args: P.args, **kwargs: P.kwargs) -> Iterator[Item]:
    """All that a list has, asked for as it is needed: `each(callboard.list_campaigns, status="running")`."""
    while True:
        page = operation(*args, **kwargs)
        yield from page.data
        if not (page.has_more and page.next_cursor):
            return
        kwargs["cursor"] = page.next_cursor


async def each_async(
    operation: Callable[P, Awaitable[Page[Item]]], *args: P.args, **kwargs: P.kwargs
) -> AsyncIterator[Item]:
    """`each` of an AsyncCallboard: `async for campaign in each_async(callboard.list_campaigns)`."""
    while True:
        page = await operation(*args, **kwargs)
        for item in page.data:
            yield item
        if not (page.has_more and page.next_cursor):
            return
        kwargs["cursor"] = page.next_cursor
