"""A server of tools with the package `mcp`, over HTTP at the port that it is given."""

import sys

from mcp.server import MCPServer
from pydantic import BaseModel

server = MCPServer("fast")


class Sum(BaseModel):
    sum: int


@server.tool()
def add(a: int, b: int) -> Sum:
    """Adds two numbers."""
    return Sum(sum=a + b)


@server.tool()
def fail() -> str:
    """Fails."""
    raise ValueError("no lion today")


server.run("streamable-http", host="127.0.0.1", port=int(sys.argv[1]))
