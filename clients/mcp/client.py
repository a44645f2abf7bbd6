#!/usr/bin/env python3
"""Connects the official MCP client to a running Callboard, by standard input and by HTTP, and asks it a few things.

    pip install mcp
    CALLBOARD_URL=http://127.0.0.1:8080 CALLBOARD_API_KEY=vk_test_… CALLBOARD_BIN=target/debug/callboard python3 clients/mcp/client.py

The key needs the scopes agents:read, sessions:read and concurrency:read. Nothing is changed. Ends with 0 if all is well.
"""

import asyncio
import json
import os
import sys
import urllib.error
import urllib.request

import mcp
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

URL = os.environ.get("CALLBOARD_URL", "http://127.0.0.1:8080").rstrip("/")
KEY = os.environ.get("CALLBOARD_API_KEY", "")
BIN = os.environ.get("CALLBOARD_BIN", "callboard")
NOBODY = "00000000-0000-7000-8000-000000000000"


def field(thing, snake, camel):
    """Of a model: version 2 of the package writes names as Python does, version 1 as the protocol does."""
    return getattr(thing, snake) if hasattr(thing, snake) else getattr(thing, camel)


def http_streams():
    """The streams of the HTTP transport, which has moved between the package's versions."""
    from mcp.client import streamable_http

    headers = {"Authorization": f"Bearer {KEY}"}
    if hasattr(streamable_http, "streamable_http_client"):
        client = streamable_http.create_mcp_http_client(headers=headers)
        return streamable_http.streamable_http_client(f"{URL}/mcp", http_client=client)
    return streamable_http.streamablehttp_client(f"{URL}/mcp", headers=headers)


async def call(session, name, arguments):
    """What a tool answers, and whether that is an error."""
    result = await session.call_tool(name, arguments)
    content = field(result, "structured_content", "structuredContent")
    assert json.loads(result.content[0].text) == content, f"{name}: text and structure differ"
    return content, bool(field(result, "is_error", "isError"))


async def check(how, streams):
    async with ClientSession(streams[0], streams[1]) as session:
        begun = await session.initialize()
        info = field(begun, "server_info", "serverInfo")
        assert info.name == "callboard", info
        await session.send_ping()
        tools = (await session.list_tools()).tools
        names = {tool.name for tool in tools}
        assert {"get_workspace", "list_agents", "search_calls", "get_concurrency"} <= names, names
        for tool in tools:
            hints = tool.annotations
            assert field(hints, "read_only_hint", "readOnlyHint"), tool.name
            assert field(tool, "input_schema", "inputSchema")["type"] == "object", tool.name

        workspace, failed = await call(session, "get_workspace", {})
        assert not failed and workspace["answer"]["tenant"]["slug"], workspace
        concurrency, failed = await call(session, "get_concurrency", {})
        assert not failed and concurrency["answer"]["limit"] >= 1, concurrency
        agents, failed = await call(session, "list_agents", {"limit": 1})
        assert not failed and isinstance(agents["answer"]["data"], list), agents
        calls, failed = await call(session, "search_calls", {"limit": 2})
        assert not failed and "notice" in calls, calls
        for found in calls["answer"]["data"]:
            said, failed = await call(session, "get_call_transcript", {"id": found["id"], "max_turns": 3})
            assert failed or len(said["answer"]["turns"]) <= 3, said

        missing, failed = await call(session, "get_call", {"id": NOBODY})
        assert failed and missing["error"]["code"] == "not_found", missing
        unfit, failed = await call(session, "list_agents", {"limit": 1000})
        assert failed and unfit["error"]["param"] == "limit", unfit
        try:
            await session.call_tool("start_campaign", {})
        except Exception as error:  # The class is named differently in each version of the package.
            assert "no tool" in str(error), error
        else:
            raise AssertionError("a tool that is not there was called")
    version = field(begun, "protocol_version", "protocolVersion")
    print(f"{how}: {len(tools)} tools, protocol {version}")


def status(method, headers, body=None):
    request = urllib.request.Request(f"{URL}/mcp", body, {"Content-Type": "application/json", **headers}, method=method)
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.status
    except urllib.error.HTTPError as error:
        return error.code


def check_refusals():
    """What no client of the package sends."""
    key = {"Authorization": f"Bearer {KEY}"}
    ping = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'
    for expected, method, headers, body in [
        (200, "POST", key, ping),
        (401, "POST", {}, ping),
        (403, "POST", {**key, "Origin": "https://evil.example"}, ping),
        (400, "POST", {**key, "MCP-Protocol-Version": "2020-01-01"}, ping),
        (400, "POST", key, b"nonsense"),
        (413, "POST", key, b"x" * 100_000),
        (405, "GET", key, None),
        (405, "DELETE", key, None),
    ]:
        found = status(method, headers, body)
        assert found == expected, f"{method} {sorted(headers)}: {found}, not {expected}"
    print("refusals: as they should be")


async def main():
    environment = {"CALLBOARD_URL": URL, "CALLBOARD_API_KEY": KEY}
    async with stdio_client(StdioServerParameters(command=BIN, args=["mcp"], env=environment)) as streams:
        await check("stdio", streams)
    async with http_streams() as streams:
        await check("http", streams)
    check_refusals()


if __name__ == "__main__":
    if not KEY:
        sys.exit("CALLBOARD_API_KEY is not set")
    print(f"mcp {getattr(mcp, '__version__', '')} from {mcp.__file__}")
    asyncio.run(main())
