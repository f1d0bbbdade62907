// The official JavaScript SDK 1.3 as a client, speaking 1.0 and, through its compatibility layer, 0.3.
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { Role, TaskState } from '@a2a-js/sdk';
import { ClientFactory, DefaultAgentCardResolver, JsonRpcTransportFactory } from '@a2a-js/sdk/client';
import { TaskNotCancelableError, TaskNotFoundError, UnsupportedOperationError } from '@a2a-js/sdk/errors';

const URLS = { echo: process.env.ECHO_URL, tck: process.env.TCK_URL, bench: process.env.BENCH_URL };
const TEXT = 'one two three';
const { TASK_STATE_COMPLETED: COMPLETED, TASK_STATE_CANCELED: CANCELED } = TaskState;
const { TASK_STATE_INPUT_REQUIRED: INPUT_REQUIRED, TASK_STATE_WORKING: WORKING } = TaskState;

/** A client made from the card that the server gives for this version. */
function connect(version, agent) {
  const legacyCompat = { enabled: true };
  const headers = version ? { 'A2A-Version': version } : {};
  const fetchCard = (url) => fetch(url, { headers });
  const cardResolver = new DefaultAgentCardResolver({ legacyCompat, fetchImpl: fetchCard });
  const factory = new ClientFactory({ transports: [new JsonRpcTransportFactory({ legacyCompat })], cardResolver });
  return factory.createFromUrl(URLS[agent]);
}

function message(text = TEXT, prefix = 'interop', fields = {}, configuration = undefined) {
  const parts = [{ content: { $case: 'text', value: text }, metadata: undefined, filename: '', mediaType: '' }];
  return {
    tenant: '',
    message: {
      messageId: `${prefix}-${randomUUID()}`, role: Role.ROLE_USER, parts,
      contextId: '', taskId: '', extensions: [], referenceTaskIds: [], metadata: undefined, ...fields,
    },
    configuration,
    metadata: undefined,
  };
}

const atOnce = () => ({ acceptedOutputModes: [], returnImmediately: true, taskPushNotificationConfig: undefined });
const id = (task, more = {}) => ({ tenant: '', id: task.id ?? task, ...more });
const texts = (artifacts) => artifacts.flatMap((a) => a.parts.map((p) => p.content.value));

async function poll(client, task) {
  for (let i = 0; i < 100; i++) {
    const now = await client.getTask(id(task));
    if (now.status.state === COMPLETED) return now;
    await sleep(50);
  }
  assert.fail('the task does not end');
}

/** Reads a stream to its end: the task it opened with, the artifact chunks, the states. */
async function follow(stream) {
  const seen = { task: undefined, chunks: [], states: [] };
  for await (const { payload } of stream) {
    if (payload.$case === 'task') seen.states.push((seen.task = payload.value).status.state);
    else if (payload.$case === 'statusUpdate') seen.states.push(payload.value.status.state);
    else if (payload.$case === 'artifactUpdate') seen.chunks.push(...texts([payload.value.artifact]));
  }
  return seen;
}

/** An error of the SDK's class, thrown itself or as the cause (as it is for one that came in a stream). */
const isError = (expected) => (error) => error instanceof expected || error.cause instanceof expected;

test('a card fetched with no version header leads to 1.0', async () => {
  assert.equal((await connect(undefined, 'echo')).protocolVersion, '1.0');
});

for (const version of ['1.0', '0.3']) {
  describe(`protocol ${version}`, { concurrency: true, timeout: 60_000 }, () => {
    test('the card decides the version spoken', async () => {
      for (const agent of Object.keys(URLS)) {
        const client = await connect(version, agent);
        assert.equal(client.protocolVersion, version);
        const card = await client.getAgentCard();
        assert.ok(card.name && card.capabilities.streaming);
      }
    });

    test('a send waits for the answer', async () => {
      const task = await (await connect(version, 'echo')).sendMessage(message());
      assert.equal(task.status.state, COMPLETED);
      assert.equal(texts(task.artifacts).join(''), TEXT);
    });

    test('a send at once, then polling', async () => {
      const client = await connect(version, 'bench');
      const task = await client.sendMessage(message('fanout:3:300:50', 'interop', {}, atOnce()));
      assert.ok([TaskState.TASK_STATE_SUBMITTED, WORKING].includes(task.status.state));
      assert.equal(texts((await poll(client, task)).artifacts).length, 3);
    });

    test('a stream', async () => {
      const seen = await follow((await connect(version, 'echo')).sendMessageStream(message()));
      assert.ok(seen.task.id);
      assert.equal(seen.chunks.length, 3);
      assert.equal(seen.chunks.join(''), TEXT);
      assert.equal(seen.states.at(-1), COMPLETED);
    });

    test("the tck agent's stream", async () => {
      const client = await connect(version, 'tck');
      const seen = await follow(client.sendMessageStream(message(TEXT, 'tck-stream-003')));
      assert.deepEqual(seen.chunks, ['Stream task lifecycle']);
      assert.ok(seen.states.includes(WORKING));
      assert.equal(seen.states.at(-1), COMPLETED);
    });

    test('a message instead of a task', async () => {
      const client = await connect(version, 'tck');
      const answer = await client.sendMessage(message(TEXT, 'tck-message-response'));
      assert.equal(answer.parts[0].content.value, 'Direct message response');
      const kinds = [];
      for await (const { payload } of client.sendMessageStream(message(TEXT, 'tck-message-response'))) kinds.push(payload.$case);
      assert.deepEqual(kinds, ['message']);
    });

    test('the kinds of parts', async () => {
      const client = await connect(version, 'tck');
      const part = async (kind) =>
        (await client.sendMessage(message(TEXT, `tck-artifact-${kind}`))).artifacts[0].parts[0];
      assert.equal((await part('text')).content.value, 'Generated text content');
      assert.deepEqual((await part('data')).content.value, { key: 'value', count: 42 });
      const [url, raw] = [await part('file-url'), await part('file')];
      assert.deepEqual(url.content, { $case: 'url', value: 'https://example.com/output.txt' });
      assert.equal(raw.content.$case, 'raw');
      for (const file of [url, raw]) assert.deepEqual([file.filename, file.mediaType], ['output.txt', 'text/plain']);
    });

    test('get, with and without history', async () => {
      const client = await connect(version, 'echo');
      const task = await client.sendMessage(message());
      const got = await client.getTask(id(task, { historyLength: 10 }));
      assert.equal(texts(got.artifacts).join(''), TEXT);
      assert.equal(got.history[0].parts[0].content.value, TEXT);
      assert.equal((await client.getTask(id(task, { historyLength: 0 }))).history.length, 0);
    });

    test('list', async () => {
      const client = await connect(version, 'echo');
      const contextId = randomUUID();
      if (version === '0.3') return assert.rejects(client.listTasks({ tenant: '', contextId }), /Method not found/);
      const ids = [];
      for (let i = 0; i < 3; i++) ids.push((await client.sendMessage(message(TEXT, 'interop', { contextId }))).id);
      const page = (pageToken) =>
        client.listTasks({ tenant: '', contextId, status: 0, pageSize: 2, pageToken, statusTimestampAfter: undefined });
      const first = await page('');
      assert.deepEqual([first.tasks.length, first.totalSize, first.pageSize], [2, 3, 2]);
      const rest = await page(first.nextPageToken);
      assert.equal(rest.nextPageToken, '');
      assert.deepEqual([...first.tasks, ...rest.tasks].map((t) => t.id).sort(), ids.sort());
    });

    test('cancel a waiting task, once', async () => {
      const client = await connect(version, 'tck');
      const task = await client.sendMessage(message(TEXT, 'tck-input-required'));
      assert.equal(task.status.state, INPUT_REQUIRED);
      assert.equal((await client.cancelTask(id(task))).status.state, CANCELED);
      await assert.rejects(client.cancelTask(id(task)), isError(TaskNotCancelableError));
    });

    test('cancel a running task', async () => {
      const client = await connect(version, 'bench');
      const task = await client.sendMessage(message('fanout:5:10000:10', 'interop', {}, atOnce()));
      assert.equal((await client.cancelTask(id(task))).status.state, CANCELED);
    });

    test('continue by task id', async () => {
      const client = await connect(version, 'tck');
      const turn = (text, prefix, taskId = '') => client.sendMessage(message(text, prefix, { taskId }));
      const task = await turn('first', 'tck-input-required');
      assert.equal((await turn('second', 'tck-input-required', task.id)).status.state, INPUT_REQUIRED);
      const done = await turn('third', 'tck-complete-task', task.id);
      assert.deepEqual([done.id, done.contextId, done.status.state], [task.id, task.contextId, COMPLETED]);
      const { history } = await client.getTask(id(task, { historyLength: 20 }));
      const said = history.filter((m) => m.role === Role.ROLE_USER).map((m) => m.parts[0].content.value);
      assert.deepEqual(said, ['first', 'second', 'third']);
    });

    test('an unknown task', async () => {
      const client = await connect(version, 'echo');
      const taskId = randomUUID();
      for (const call of [
        () => client.getTask(id(taskId)),
        () => client.cancelTask(id(taskId)),
        () => client.sendMessage(message(TEXT, 'interop', { taskId })),
        () => follow(client.sendMessageStream(message(TEXT, 'interop', { taskId }))),
        () => follow(client.resubscribeTask(id(taskId))),
      ]) {
        await assert.rejects(call, isError(TaskNotFoundError));
      }
    });

    test('subscribe from the start', async () => {
      const client = await connect(version, 'bench');
      const task = await client.sendMessage(message('fanout:5:500:50', 'interop', {}, atOnce()));
      const seen = await follow(client.resubscribeTask(id(task)));
      assert.equal(seen.task.id, task.id);
      assert.equal(seen.chunks.length, 5);
      assert.equal(seen.states.at(-1), COMPLETED);
    });

    test('subscribe after a dropped stream: every chunk once', async () => {
      const client = await connect(version, 'bench');
      let taskId;
      for await (const { payload } of client.sendMessageStream(message('fanout:6:50:200'))) {
        if (payload.$case !== 'artifactUpdate') continue;
        taskId = payload.value.taskId;
        break;
      }
      const seen = await follow(client.resubscribeTask(id(taskId)));
      const held = texts(seen.task.artifacts);
      assert.ok(held.length > 0);
      assert.deepEqual([...held, ...seen.chunks], texts((await poll(client, taskId)).artifacts));
      assert.equal(seen.states.at(-1), COMPLETED);
    });

    test('a finished task takes no more', async () => {
      const client = await connect(version, 'tck');
      const task = await client.sendMessage(message(TEXT, 'tck-complete-task'));
      const more = client.sendMessage(message(TEXT, 'tck-complete-task', { taskId: task.id }));
      await assert.rejects(more, version === '1.0' ? isError(UnsupportedOperationError) : Error);
    });
  });
}
