"""The Python SDK of Agent2Agent against the served actor."""

import asyncio
import os
import uuid

import httpx
from a2a.client import A2ACardResolver, ClientConfig, ClientFactory
from a2a.types import CancelTaskRequest, GetTaskRequest, Message, Part, Role, SendMessageRequest, TaskState

SERVER = os.environ["SERVER"]


def message(text, **ids):
    said = Message(message_id=uuid.uuid4().hex, role=Role.ROLE_USER, parts=[Part(text=text)], **ids)
    return SendMessageRequest(message=said)


async def last(client, request):
    """Follows a message to its end: the task, put together from what is told."""
    task = None
    async for told in client.send_message(request):
        if told.HasField("task"):
            task = told.task
        elif told.HasField("status_update"):
            task.status.CopyFrom(told.status_update.status)
        elif told.HasField("artifact_update"):
            update = told.artifact_update
            if not update.append:
                del task.artifacts[:]
                task.artifacts.append(update.artifact)
            else:
                task.artifacts[0].parts.extend(update.artifact.parts)
    return task


def text(task):
    return "".join(part.text for artifact in task.artifacts for part in artifact.parts)


async def main():
    async with httpx.AsyncClient(timeout=60) as http:
        card = await A2ACardResolver(http, SERVER).get_agent_card()
        assert card.name == "actor", card
        for streaming in (True, False):
            client = ClientFactory(ClientConfig(httpx_client=http, streaming=streaming)).create(card)
            task = await last(client, message("tool"))
            assert task.status.state == TaskState.TASK_STATE_COMPLETED, task
            assert text(task) == "So it is: 17 degrees in Bern.", task
            again = await client.get_task(GetTaskRequest(id=task.id))
            assert text(again) == text(task) and again.context_id == task.context_id, again

            asked = await last(client, message("ask"))
            assert asked.status.state == TaskState.TASK_STATE_INPUT_REQUIRED, asked
            done = await last(client, message("approve", task_id=asked.id, context_id=asked.context_id))
            assert done.status.state == TaskState.TASK_STATE_COMPLETED, done
            assert text(done) == 'So it is: refunded "A-17".', done

            failed = await last(client, message("fail"))
            assert failed.status.state == TaskState.TASK_STATE_FAILED, failed
            cancelled = await last(client, message("cancel"))
            assert cancelled.status.state == TaskState.TASK_STATE_CANCELED, cancelled
            for request in (client.cancel_task(CancelTaskRequest(id=task.id)), client.get_task(GetTaskRequest(id="nobody"))):
                try:
                    await request
                except Exception as error:
                    assert type(error).__name__ in ("TaskNotFoundError", "TaskNotCancelableError"), error
                else:
                    raise AssertionError("no error")
            print(f"a2a: {'streaming' if streaming else 'whole'}: passed")


asyncio.run(main())
