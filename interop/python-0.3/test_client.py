"""The official Python SDK of the 0.3 line as a client: it knows nothing of 1.0 and sends no version header."""

import asyncio
import uuid

import httpx
import pytest
from a2a.client import A2ACardResolver
from a2a.client.errors import A2AClientJSONRPCError
from a2a.types import (
    Message,
    Part,
    Role,
    Task,
    TaskArtifactUpdateEvent,
    TaskIdParams,
    TaskQueryParams,
    TaskState,
    TextPart,
)
from conftest import URLS

TEXT = "one two three"
NOT_FOUND, NOT_CANCELABLE, INVALID_PARAMS = -32001, -32002, -32602


def message(text=TEXT, prefix="interop", **fields):
    return Message(
        message_id=f"{prefix}-{uuid.uuid4()}", role=Role.user, parts=[Part(root=TextPart(text=text))], **fields
    )


async def send(client, *args, **kwargs):
    """A send that is not a stream: the Task or the Message."""
    [event] = [e async for e in client.send_message(message(*args, **kwargs))]
    return event if isinstance(event, Message) else event[0]


def text_of(artifacts):
    return "".join(part.root.text for artifact in artifacts or [] for part in artifact.parts)


async def poll(client, task_id):
    for _ in range(100):
        task = await client.get_task(TaskQueryParams(id=task_id))
        if task.status.state == TaskState.completed:
            return task
        await asyncio.sleep(0.05)
    pytest.fail(f"still {task.status.state}")


async def follow(stream):
    """Reads a stream to its end: the text its first Task held, the chunks after it, the last state."""
    held, chunks, task = None, [], None
    async for task, update in stream:
        if update is None:
            held = text_of(task.artifacts)
        elif isinstance(update, TaskArtifactUpdateEvent):
            chunks.append(text_of([update.artifact]))
    return held, chunks, task.status.state


def code(raised):
    return raised.value.error.code


@pytest.mark.parametrize("agent", ["echo", "tck", "bench"])
async def test_card(agent):
    async with httpx.AsyncClient() as http:
        card = await A2ACardResolver(http, URLS[agent]).get_agent_card()
    assert card.name and card.capabilities.streaming and card.skills
    assert card.protocol_version.startswith("0.3") and card.preferred_transport == "JSONRPC"


async def test_send_waits_for_the_answer(connect):
    task = await send(await connect("echo", streaming=False))
    assert isinstance(task, Task) and task.status.state == TaskState.completed
    assert text_of(task.artifacts) == TEXT


async def test_send_at_once_then_poll(connect):
    client = await connect("bench", streaming=False, polling=True)
    task = await send(client, "fanout:3:300:50")
    assert task.status.state in (TaskState.submitted, TaskState.working)
    assert sum(len(a.parts) for a in (await poll(client, task.id)).artifacts) == 3


async def test_stream(connect):
    client = await connect("echo")
    _, chunks, state = await follow(client.send_message(message()))
    assert len(chunks) == len(TEXT.split()) and "".join(chunks) == TEXT
    assert state == TaskState.completed


async def test_tck_stream(connect):
    client = await connect("tck")
    _, chunks, state = await follow(client.send_message(message(prefix="tck-stream-003")))
    assert (chunks, state) == (["Stream task lifecycle"], TaskState.completed)


@pytest.mark.parametrize("streaming", [False, True])
async def test_message_instead_of_a_task(connect, streaming):
    answer = await send(await connect("tck", streaming=streaming), prefix="tck-message-response")
    assert [p.root.text for p in answer.parts] == ["Direct message response"] and answer.role == Role.agent


async def test_part_kinds(connect):
    client = await connect("tck", streaming=False)

    async def part(kind):
        return (await send(client, prefix=f"tck-artifact-{kind}")).artifacts[0].parts[0].root

    assert (await part("text")).text == "Generated text content"
    assert (await part("data")).data == {"key": "value", "count": 42}
    by_url, by_bytes = (await part("file-url")).file, (await part("file")).file
    assert by_url.uri == "https://example.com/output.txt" and by_bytes.bytes
    assert {(f.name, f.mime_type) for f in (by_url, by_bytes)} == {("output.txt", "text/plain")}


async def test_get_and_history_length(connect):
    client = await connect("echo", streaming=False)
    task = await send(client)
    got = await client.get_task(TaskQueryParams(id=task.id, history_length=10))
    assert got.id == task.id and text_of(got.artifacts) == TEXT
    assert got.history[0].parts[0].root.text == TEXT
    assert not (await client.get_task(TaskQueryParams(id=task.id, history_length=0))).history


async def test_cancel_a_waiting_task_once(connect):
    client = await connect("tck", streaming=False)
    task = await send(client, prefix="tck-input-required")
    assert task.status.state == TaskState.input_required
    assert (await client.cancel_task(TaskIdParams(id=task.id))).status.state == TaskState.canceled
    with pytest.raises(A2AClientJSONRPCError) as raised:
        await client.cancel_task(TaskIdParams(id=task.id))
    assert code(raised) == NOT_CANCELABLE


async def test_cancel_a_running_task(connect):
    client = await connect("bench", streaming=False, polling=True)
    task = await send(client, "fanout:5:10000:10")
    assert (await client.cancel_task(TaskIdParams(id=task.id))).status.state == TaskState.canceled


async def test_continue_by_task_id(connect):
    client = await connect("tck", streaming=False)
    task = await send(client, "first", prefix="tck-input-required")
    again = await send(client, "second", prefix="tck-input-required", task_id=task.id)
    assert (again.id, again.status.state) == (task.id, TaskState.input_required)
    done = await send(client, "third", prefix="tck-complete-task", task_id=task.id)
    assert (done.id, done.context_id, done.status.state) == (task.id, task.context_id, TaskState.completed)
    history = (await client.get_task(TaskQueryParams(id=task.id, history_length=20))).history
    assert [m.parts[0].root.text for m in history if m.role == Role.user] == ["first", "second", "third"]


async def test_unknown_task(connect):
    client, unknown = await connect("echo", streaming=False), str(uuid.uuid4())
    for call in (
        client.get_task(TaskQueryParams(id=unknown)),
        client.cancel_task(TaskIdParams(id=unknown)),
        send(client, task_id=unknown),
    ):
        with pytest.raises(A2AClientJSONRPCError) as raised:
            await call
        assert code(raised) == NOT_FOUND


async def test_unknown_task_on_a_stream(connect):
    """This SDK reads an error here only from an event stream."""
    client = await connect("echo")
    with pytest.raises(A2AClientJSONRPCError) as raised:
        await follow(client.resubscribe(TaskIdParams(id=str(uuid.uuid4()))))
    assert code(raised) == NOT_FOUND


async def test_resubscribe_from_the_start(connect):
    task = await send(await connect("bench", streaming=False, polling=True), "fanout:5:500:50")
    client = await connect("bench")
    _, chunks, state = await follow(client.resubscribe(TaskIdParams(id=task.id)))
    assert len(chunks) == 5 and state == TaskState.completed


async def test_resubscribe_after_a_dropped_stream(connect):
    """What the snapshot holds and what comes after it are together every chunk, once."""
    client = await connect("bench")
    stream = client.send_message(message("fanout:6:50:200"))
    async for task, update in stream:
        if isinstance(update, TaskArtifactUpdateEvent):
            break
    await stream.aclose()
    held, chunks, state = await follow(client.resubscribe(TaskIdParams(id=task.id)))
    assert held and held + "".join(chunks) == text_of((await poll(client, task.id)).artifacts)
    assert state == TaskState.completed


async def test_a_finished_task_takes_no_more(connect):
    client = await connect("tck", streaming=False)
    task = await send(client, prefix="tck-complete-task")
    with pytest.raises(A2AClientJSONRPCError) as raised:
        await send(client, prefix="tck-complete-task", task_id=task.id)
    assert code(raised) == INVALID_PARAMS
