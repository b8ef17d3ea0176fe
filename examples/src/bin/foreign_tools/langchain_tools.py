"""Tools that were written for LangChain, served to any client of the Model Context Protocol.

`pip install mcp langchain-core`
"""

from langchain_core.tools import tool
from mcp.server import MCPServer


@tool
def word_count(text: str) -> int:
    """Counts the words of a text."""
    return len(text.split())


server = MCPServer("langchain")
for each in [word_count]:  # and all others that there are
    server.add_tool(each.func, name=each.name, description=each.description)
server.run("stdio")
