"""An MCP server of the official Python package (pip install 'mcp>=2'), whose tools functions can be.

    python clients/mcp/server.py 8765          answers in event streams, with sessions
    python clients/mcp/server.py 8765 json     answers in JSON, without sessions

Its endpoint is http://127.0.0.1:8765/mcp; a service that runs with --dev may call it.
"""
import sys

from mcp.server import MCPServer

server = MCPServer("appointments")


@server.tool()
def find_slots(day: str) -> dict[str, list[str]]:
    """Free slots of a day, given as YYYY-MM-DD. Call it when the other side names a day."""
    return {"slots": ["9:00", "14:30"] if day else []}


@server.tool()
def book(day: str, time: str) -> str:
    """Books a slot. Call it when the other side has agreed to one."""
    if time not in ("9:00", "14:30"):
        raise ValueError("this slot is not free")
    return f"Booked {day} at {time}."


if __name__ == "__main__":
    port, is_json = int(sys.argv[1]), sys.argv[2:] == ["json"]
    server.run(transport="streamable-http", port=port, json_response=is_json, stateless_http=is_json)
