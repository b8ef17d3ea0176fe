"""The Python SDK of the Agent Client Protocol against `agent acp`."""

import asyncio
import os

from acp import PROTOCOL_VERSION, spawn_agent_process, text_block
from acp.interfaces import Client

AGENT = os.environ["AGENT"]


class Editor(Client):
    """Takes what it is told."""

    def __init__(self):
        self.said = ""

    async def request_permission(self, *args, **kwargs):
        raise AssertionError("nothing is asked")

    async def session_update(self, session_id, update, **kwargs):
        if update.session_update == "agent_message_chunk":
            self.said += update.content.text


async def main():
    editor = Editor()
    async with spawn_agent_process(editor, AGENT, "acp", "--store", "memory") as (connection, _process):
        hello = await connection.initialize(protocol_version=PROTOCOL_VERSION)
        assert hello.protocol_version == PROTOCOL_VERSION and hello.agent_capabilities.load_session, hello
        session = await connection.new_session(cwd=os.getcwd(), mcp_servers=[])
        end = await connection.prompt(session_id=session.session_id, prompt=[text_block("What is a journal?")])
        assert end.stop_reason == "end_turn" and editor.said, (end, editor.said)
        again = editor.said
        editor.said = ""
        await connection.load_session(cwd=os.getcwd(), session_id=session.session_id, mcp_servers=[])
        assert editor.said == again, (editor.said, again)
    print("acp: passed")


asyncio.run(main())
