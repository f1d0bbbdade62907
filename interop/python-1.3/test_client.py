"""The official Python SDK 1.3 as a client, speaking 1.0 and, through its compatibility layer, 0.3."""

import asyncio
import uuid

import httpx
import pytest
from a2a.client import ClientConfig, ClientFactory
from a2a.client.card_resolver import parse_agent_card
from a2a.types import (
    CancelTaskRequest,
    GetTaskRequest,
    ListTasksRequest,
    Message,
    Part,
    Role,
    SendMessageRequest,
    SubscribeToTaskRequest,
    TaskState,
)
from a2a.utils.errors import TaskNotCancelableError, TaskNotFoundError, UnsupportedOperationError
from conftest import URLS
from google.protobuf.json_format import MessageToDict

TEXT = "one two three"
COMPLETED, CANCELED = TaskState.TASK_STATE_COMPLETED, TaskState.TASK_STATE_CANCELED
INPUT_REQUIRED = TaskState.TASK_STATE_INPUT_REQUIRED


def message(text=TEXT, prefix="interop", **fields):
    return SendMessageRequest(
        message=Message(
            message_id=f"{prefix}-{uuid.uuid4()}", role=Role.ROLE_USER, parts=[Part(text=text)], **fields
        )
    )


async def send(client, *args, **kwargs):
    """A send that is not a stream: its only event."""
    [event] = [e async for e in client.send_message(message(*args, **kwargs))]
    return event


def text_of(artifacts):
    return "".join(part.text for artifact in artifacts for part in artifact.parts)


async def poll(client, task_id):
    for _ in range(100):
        task = await client.get_task(GetTaskRequest(id=task_id))
        if task.status.state == COMPLETED:
            return task
        await asyncio.sleep(0.05)
    pytest.fail(f"still {TaskState.Name(task.status.state)}")


async def follow(stream):
    """Reads a stream to its end: the task it opened with, the artifact chunks, the states."""
    task, chunks, states = None, [], []
    async for event in stream:
        kind = event.WhichOneof("payload")
        if kind == "task":
            task = event.task
            states.append(task.status.state)
        elif kind == "status_update":
            states.append(event.status_update.status.state)
        elif kind == "artifact_update":
            chunks.append(text_of([event.artifact_update.artifact]))
    return task, chunks, states


@pytest.mark.parametrize("agent", ["echo", "tck", "bench"])
async def test_card_for_both_versions(agent):
    """Fetched with no version header it serves readers of either kind; this one takes 1.0 from it."""
    async with httpx.AsyncClient() as http:
        raw = (await http.get(f"{URLS[agent]}/.well-known/agent-card.json")).json()
        assert raw["url"] and raw["preferredTransport"] == "JSONRPC"
        card = parse_agent_card(raw)
        assert card.name and card.skills and card.capabilities.streaming
        client = ClientFactory(ClientConfig(httpx_client=http, streaming=False)).create(card)
        assert type(client._transport).__name__ == "JsonRpcTransport", "not the one for 0.3"


async def test_send_waits_for_the_answer(connect):
    event = await send(await connect("echo", streaming=False))
    assert event.task.status.state == COMPLETED
    assert text_of(event.task.artifacts) == TEXT
    assert event.task.id and event.task.context_id


async def test_send_at_once_then_poll(connect):
    client = await connect("bench", streaming=False, polling=True)
    task = (await send(client, "fanout:3:300:50")).task
    assert task.status.state in (TaskState.TASK_STATE_SUBMITTED, TaskState.TASK_STATE_WORKING)
    done = await poll(client, task.id)
    assert sum(len(a.parts) for a in done.artifacts) == 3


async def test_stream(connect):
    client = await connect("echo")
    task, chunks, states = await follow(client.send_message(message()))
    assert task.id
    assert len(chunks) == len(TEXT.split()) and "".join(chunks) == TEXT
    assert states[-1] == COMPLETED


async def test_tck_stream(connect):
    client = await connect("tck")
    _, chunks, states = await follow(client.send_message(message(prefix="tck-stream-003")))
    assert chunks == ["Stream task lifecycle"]
    assert TaskState.TASK_STATE_WORKING in states and states[-1] == COMPLETED


@pytest.mark.parametrize("streaming", [False, True])
async def test_message_instead_of_a_task(connect, streaming):
    event = await send(await connect("tck", streaming=streaming), prefix="tck-message-response")
    assert [p.text for p in event.message.parts] == ["Direct message response"]
    assert event.message.role == Role.ROLE_AGENT


@pytest.mark.parametrize(
    ("prefix", "expected"),
    [
        ("tck-artifact-text", {"text": "Generated text content"}),
        ("tck-artifact-file-url", {"url": "https://example.com/output.txt", "filename": "output.txt", "mediaType": "text/plain"}),
        ("tck-artifact-data", {"data": {"key": "value", "count": 42.0}}),
    ],
)
async def test_part_kinds(connect, prefix, expected):
    event = await send(await connect("tck", streaming=False), prefix=prefix)
    [part] = event.task.artifacts[0].parts
    assert MessageToDict(part) == expected


async def test_file_bytes(connect):
    event = await send(await connect("tck", streaming=False), prefix="tck-artifact-file")
    [part] = event.task.artifacts[0].parts
    assert part.raw and (part.filename, part.media_type) == ("output.txt", "text/plain")


async def test_rejected(connect):
    event = await send(await connect("tck", streaming=False), prefix="tck-reject-task")
    assert event.task.status.state == TaskState.TASK_STATE_REJECTED


async def test_get_and_history_length(connect):
    client = await connect("echo", streaming=False)
    task = (await send(client)).task
    got = await client.get_task(GetTaskRequest(id=task.id, history_length=10))
    assert got.id == task.id and text_of(got.artifacts) == TEXT
    assert got.history[0].parts[0].text == TEXT
    assert not (await client.get_task(GetTaskRequest(id=task.id, history_length=0))).history


async def test_list(connect, version):
    client = await connect("echo", streaming=False)
    if version == "0.3":
        with pytest.raises(NotImplementedError):
            await client.list_tasks(ListTasksRequest())
        return
    context = str(uuid.uuid4())
    ids = {(await send(client, context_id=context)).task.id for _ in range(3)}
    first = await client.list_tasks(ListTasksRequest(context_id=context, page_size=2))
    assert (len(first.tasks), first.total_size, first.page_size) == (2, 3, 2) and first.next_page_token
    rest = await client.list_tasks(
        ListTasksRequest(context_id=context, page_size=2, page_token=first.next_page_token)
    )
    assert {t.id for t in [*first.tasks, *rest.tasks]} == ids and not rest.next_page_token
    assert not first.tasks[0].artifacts, "left out by default"
    full = await client.list_tasks(ListTasksRequest(context_id=context, include_artifacts=True))
    assert text_of(full.tasks[0].artifacts) == TEXT


async def test_cancel_a_waiting_task_once(connect):
    client = await connect("tck", streaming=False)
    task = (await send(client, prefix="tck-input-required")).task
    assert task.status.state == INPUT_REQUIRED
    assert (await client.cancel_task(CancelTaskRequest(id=task.id))).status.state == CANCELED
    with pytest.raises(TaskNotCancelableError):
        await client.cancel_task(CancelTaskRequest(id=task.id))


async def test_cancel_a_running_task(connect):
    client = await connect("bench", streaming=False, polling=True)
    task = (await send(client, "fanout:5:10000:10")).task
    assert (await client.cancel_task(CancelTaskRequest(id=task.id))).status.state == CANCELED
    assert (await client.get_task(GetTaskRequest(id=task.id))).status.state == CANCELED


async def test_continue_by_task_id(connect):
    client = await connect("tck", streaming=False)
    task = (await send(client, "first", prefix="tck-input-required")).task
    again = (await send(client, "second", prefix="tck-input-required", task_id=task.id)).task
    assert (again.id, again.status.state) == (task.id, INPUT_REQUIRED)
    done = (await send(client, "third", prefix="tck-complete-task", task_id=task.id)).task
    assert (done.id, done.context_id, done.status.state) == (task.id, task.context_id, COMPLETED)
    history = (await client.get_task(GetTaskRequest(id=task.id, history_length=20))).history
    assert [m.parts[0].text for m in history if m.role == Role.ROLE_USER] == ["first", "second", "third"]


async def test_unknown_task(connect):
    client, unknown = await connect("echo"), str(uuid.uuid4())
    with pytest.raises(TaskNotFoundError):
        await client.get_task(GetTaskRequest(id=unknown))
    with pytest.raises(TaskNotFoundError):
        await client.cancel_task(CancelTaskRequest(id=unknown))
    with pytest.raises(TaskNotFoundError):
        await follow(client.send_message(message(task_id=unknown)))
    with pytest.raises(TaskNotFoundError):
        await follow(client.subscribe(SubscribeToTaskRequest(id=unknown)))


async def test_subscribe_from_the_start(connect):
    task = (await send(await connect("bench", streaming=False, polling=True), "fanout:5:500:50")).task
    client = await connect("bench")
    snapshot, chunks, states = await follow(client.subscribe(SubscribeToTaskRequest(id=task.id)))
    assert snapshot.id == task.id
    assert len(chunks) == 5 and states[-1] == COMPLETED


async def test_subscribe_after_a_dropped_stream(connect):
    """What the snapshot holds and what comes after it are together every chunk, once."""
    client = await connect("bench")
    stream = client.send_message(message("fanout:6:50:200"))
    async for event in stream:
        if event.HasField("artifact_update"):
            task_id = event.artifact_update.task_id
            break
    await stream.aclose()
    snapshot, chunks, states = await follow(client.subscribe(SubscribeToTaskRequest(id=task_id)))
    assert text_of(snapshot.artifacts) and text_of(snapshot.artifacts) + "".join(chunks) == text_of(
        (await poll(client, task_id)).artifacts
    )
    assert states[-1] == COMPLETED


async def test_two_subscribers_see_the_same(connect):
    task = (await send(await connect("tck", streaming=False), prefix="tck-input-required")).task
    client = await connect("tck")
    both = [
        asyncio.create_task(follow(client.subscribe(SubscribeToTaskRequest(id=task.id)))) for _ in range(2)
    ]
    await asyncio.sleep(0.5)
    await follow(client.send_message(message(prefix="tck-complete-task", task_id=task.id)))
    first, second = await asyncio.wait_for(asyncio.gather(*both), 10)
    assert first == second and first[2][-1] == COMPLETED


async def test_a_finished_task_takes_no_more(connect, version):
    client = await connect("tck", streaming=False)
    task = (await send(client, prefix="tck-complete-task")).task
    with pytest.raises(UnsupportedOperationError if version == "1.0" else Exception):
        await send(client, prefix="tck-complete-task", task_id=task.id)
