import { v7 as uuidv7 } from '@langchain/core/utils/uuid';
import { configure, shutdown } from 'runspan';
import { RunspanCallbackHandler } from 'runspan/langchain';
import { createReceiver } from 'runspan/receiver';
import { describe, expect, test, vi } from 'vitest';
import { TraceService } from '../../server/tracing/trace-service.ts';
import { openTraces } from '../../server/tracing/traces.ts';
import { ChatServer } from '../support/chat-server.ts';
import { untilEnd } from '../support/events.ts';
import { Gate, HeldModel } from '../support/held-model.ts';

const TURN = '01a1fd2b-5bb1-73bc-99e8-03d278e3a270';
const told = {
  start_time: '2026-11-21T08:00:00.000000Z',
  end_time: '2026-11-21T08:00:05.000000Z',
  inputs: { message: 'What is a heron?' },
  outputs: { status: 'completed' },
};

/** A turn that a page has begun, now unless it is told when. */
function turnOf(id: string = uuidv7()) {
  return { ...told, id, dotted_order: `20261121T080000000000Z${id}` };
}

test('a turn is one trace, from the page down to the tools of a subagent, and can be rated', async () => {
  const receiver = await createReceiver();
  const exporter = configure({ endpoint: receiver.url, project: 'chat', tracing: true });
  const traces = new TraceService({ endpoint: receiver.url, project: 'chat', viewerUrl: receiver.url });
  const callbacks = [new RunspanCallbackHandler()];
  await using chat = await ChatServer.start({ callbacks, traces });

  const turn = turnOf();
  const { runId, traceId } = await ask(chat, 't', 'What is a heron?', { 'runspan-trace': turn.dotted_order });
  expect(traceId).toBe(turn.id);
  await untilEnd(chat, 't', runId);
  const state = (await (await fetch(`${chat.url}/api/threads/t/state`)).json()) as { metadata: object };
  expect(state.metadata).toMatchObject({ run_id: runId, trace_id: traceId });
  expect((await chat.post('/threads/t/turns', { ...turn, run_id: runId })).status).toBe(204);
  expect(await exporter.flush()).toEqual({ ok: true, pending: 0 });

  const runs = await receiver.trace(traceId);
  const depth = ({ dotted_order = '' }) => dotted_order.split('.').length - 1;
  const drawn = runs.map((run) => `${'  '.repeat(depth(run))}${run.name} ${run.run_type}`);
  expect(drawn.slice(0, 2)).toEqual(['page turn chain', '  chat turn chain']);
  expect(drawn.map((line) => line.trim())).toEqual(
    expect.arrayContaining(['task tool', 'researcher chain', 'search_docs tool', 'LocalModel llm']),
  );
  const run = runs.find(({ id }) => id === runId);
  expect(runs[0]).toMatchObject({ id: traceId, ...told });
  expect(run).toMatchObject({ name: 'chat turn', parent_run_id: traceId, session_name: 'chat' });

  // A page that is opened anew asks for an address anew, and has nothing to say twice.
  for (const said of [{ score: -1 }, { score: 1, comment: 'Clear.' }]) {
    const answer = await chat.post(`/threads/t/runs/${runId}/feedback`, {});
    const { urls } = (await answer.json()) as { urls: { user_score: string } };
    const given = await fetch(urls.user_score, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(said),
    });
    expect(given.status).toBe(200);
  }
  const feedback = await (await fetch(`${receiver.url}/feedback?run=${runId}`)).json();
  expect(feedback).toEqual([expect.objectContaining({ key: 'user_score', score: 1, comment: 'Clear.' })]);
  await shutdown();
  await receiver.close();
});

test('a turn is told of a run of its thread alone, and takes the place of no other run', async () => {
  const receiver = await createReceiver();
  const exporter = configure({ endpoint: receiver.url, tracing: true });
  const traces = new TraceService({ endpoint: receiver.url });
  await using chat = await ChatServer.start({ callbacks: [new RunspanCallbackHandler()], traces });
  const [ours, theirs] = [await chat.say('ours', 'Hello'), await chat.say('theirs', 'Hello')];
  await Promise.all([untilEnd(chat, 'ours', ours), untilEnd(chat, 'theirs', theirs)]);
  await exporter.flush();
  const before = await receiver.trace(theirs);

  const join = (traceId: string) => ask(chat, 'ours', 'Hello', { 'runspan-trace': turnOf(traceId).dotted_order });
  const dayMs = 24 * 3_600_000;
  const [now, early, late] = [
    uuidv7(),
    uuidv7({ msecs: Date.now() - dayMs }),
    uuidv7({ msecs: Date.now() + dayMs + 60_000 }),
  ];
  const runs = { now: await join(now), early: await join(early), late: await join(late) };
  for (const { runId } of Object.values(runs)) await untilEnd(chat, 'ours', runId);
  const cases: [string, string, string, number][] = [
    ['of a run of another thread', theirs, theirs, 404],
    ['of a run that has joined another trace', theirs, ours, 404],
    ['of a run that has joined no trace', uuidv7(), ours, 404],
    ['of a run that joined a trace of long before', early, runs.early.runId, 404],
    ['or of long after', late, runs.late.runId, 404],
    ['of a run that joined it', now, runs.now.runId, 204],
  ];
  for (const [which, id, run_id, status] of cases) {
    const answer = await chat.post('/threads/ours/turns', { ...turnOf(id), run_id });
    expect([which, answer.status]).toEqual([which, status]);
  }
  const after = await receiver.trace(theirs);
  expect(after.filter(({ id }) => before.some((run) => run.id === id))).toEqual(before);
  await shutdown();
  await receiver.close();
});

test('a turn that waits for an approval says so in its trace, and the one that goes on what was decided', async () => {
  const receiver = await createReceiver();
  const exporter = configure({ endpoint: receiver.url, tracing: true });
  await using chat = await ChatServer.start({ callbacks: [new RunspanCallbackHandler()] });
  const asking = await chat.say('t', 'save a note: herons');
  const requested = (await untilEnd(chat, 't', asking)).find(({ method }) => method === 'input.requested');
  const interrupt_id = requested?.params.data.interrupt_id;
  const response = { decision: 'decline' };
  const { result } = await chat.command('t', 'input.respond', { interrupt_id, response });
  const { run_id: answering } = result as { run_id: string };
  await untilEnd(chat, 't', answering);
  await exporter.flush();
  const rootOf = async (id: string) => (await receiver.trace(id)).find((run) => run.id === id);
  const waiting = await rootOf(asking);
  expect(waiting?.outputs).toMatchObject({ __interrupt__: [{ id: interrupt_id }] });
  expect(waiting?.events?.map(({ name }) => name)).toContain('GraphInterrupt');
  const resumed = await rootOf(answering);
  expect(resumed?.inputs).toEqual({ input: { resume: { [String(interrupt_id)]: response } } });
  expect(resumed?.outputs).not.toHaveProperty('__interrupt__');
  await shutdown();
  await receiver.close();
});

test('a run that has waited is no part of the trace of the run before it', async () => {
  const receiver = await createReceiver();
  const exporter = configure({ endpoint: receiver.url, project: 'chat', tracing: true });
  const gate = new Gate();
  await using chat = await ChatServer.start({
    callbacks: [new RunspanCallbackHandler()],
    chatModel: new HeldModel(gate),
  });
  await ask(chat, 't', 'Hello', { 'runspan-trace': turnOf().dotted_order });
  await gate.reached;
  const second = await chat.say('t', 'Hello');
  gate.open();
  await untilEnd(chat, 't', second);
  await exporter.flush();
  expect((await receiver.trace(second)).map(({ id }) => id)).toContain(second);
  await shutdown();
  await receiver.close();
});

describe('what is not to be traced is kept of no turn', () => {
  const cases: [NodeJS.ProcessEnv, object, object][] = [
    [{}, told.inputs, told.outputs],
    [{ RUNSPAN_HIDE_INPUTS: 'true' }, {}, told.outputs],
    [{ RUNSPAN_HIDE_INPUTS: 'what?', LANGSMITH_HIDE_OUTPUTS: 'false' }, {}, told.outputs],
    [{ LANGSMITH_HIDE_OUTPUTS: 'true' }, told.inputs, {}],
    [{ RUNSPAN_HIDE_OUTPUTS: 'false', LANGSMITH_HIDE_OUTPUTS: 'true' }, told.inputs, told.outputs],
  ];
  test.each(cases)('%j', async (env, inputs, outputs) => {
    const receiver = await createReceiver();
    const traces = await openTraces({ env: { ...env, RUNSPAN_ENDPOINT: receiver.url }, tracePort: 0, data: undefined });
    await using chat = await ChatServer.start({ traces: traces.service });
    const turn = turnOf();
    const { runId, traceId } = await ask(chat, 't', 'Hello', { 'runspan-trace': turn.dotted_order });
    await untilEnd(chat, 't', runId);
    expect((await chat.post('/threads/t/turns', { ...turn, run_id: runId })).status).toBe(204);
    const kept = (await receiver.trace(traceId)).find(({ id }) => id === traceId);
    expect([kept?.inputs ?? {}, kept?.outputs ?? {}]).toEqual([inputs, outputs]);
    await traces.close();
    await receiver.close();
  });

  test('nothing at all, where there is to be no tracing', async () => {
    const { service, callbacks } = await openTraces({
      env: { RUNSPAN_TRACING: 'false' },
      tracePort: 0,
      data: undefined,
    });
    expect([service, callbacks]).toEqual([undefined, []]);
  });
});

test('a key goes to no other machine in the clear, unless that is allowed', async () => {
  const keyTo = async (env: NodeJS.ProcessEnv): Promise<string | null> => {
    const sent = vi.spyOn(globalThis, 'fetch').mockResolvedValue(new Response());
    try {
      const all = { RUNSPAN_API_KEY: 'key', ...env };
      await (await openTraces({ env: all, tracePort: 0, data: undefined })).service?.keep(turnOf());
      return new Headers(sent.mock.calls[0]?.[1]?.headers).get('x-api-key');
    } finally {
      sent.mockRestore();
    }
  };
  const endpoint = 'http://traces.example';
  expect(await keyTo({ RUNSPAN_ENDPOINT: endpoint })).toBeNull();
  expect(await keyTo({ RUNSPAN_ENDPOINT: endpoint, RUNSPAN_ALLOW_INSECURE: 'true' })).toBe('key');
  expect(await keyTo({ RUNSPAN_ENDPOINT: 'https://traces.example' })).toBe('key');
  expect(await keyTo({ RUNSPAN_ENDPOINT: 'http://127.0.0.1:9' })).toBe('key');
  await expect(keyTo({ RUNSPAN_ENDPOINT: 'http://user:secret@127.0.0.1:1' })).rejects.toThrow(
    /^RUNSPAN_ENDPOINT has a user or a password, [^:]*$/,
  );
  await expect(keyTo({ RUNSPAN_ENDPOINT: 'here' })).rejects.toThrow('RUNSPAN_ENDPOINT is no address: here');
});

test('a turn that does not hold together is refused', async () => {
  const traces = new TraceService({ endpoint: 'http://127.0.0.1:9' });
  await using chat = await ChatServer.start({ traces });
  const turn = turnOf();
  const wrong = [
    turn,
    { ...turn, run_id: 'x' },
    { ...turn, run_id: TURN, id: 'x' },
    { ...turn, run_id: TURN, dotted_order: `${turn.dotted_order}x` },
    { ...turn, run_id: TURN, dotted_order: turnOf().dotted_order },
    { ...turn, run_id: TURN, start_time: 'today' },
    { ...turn, run_id: TURN, outputs: [] },
    {},
  ];
  const tooLarge = { ...turn, run_id: TURN, inputs: { message: 'x'.repeat(4 * 1_024 * 1_024) } };
  expect((await chat.post('/threads/t/turns', tooLarge)).status).toBe(413);
  for (const body of wrong) expect([body, (await chat.post('/threads/t/turns', body)).status]).toEqual([body, 422]);
});

test('an address for feedback is given for the runs of the thread alone', async () => {
  const receiver = await createReceiver();
  await using chat = await ChatServer.start({ traces: new TraceService({ endpoint: receiver.url }) });
  const [ours, theirs] = [await chat.say('ours', 'Hello'), await chat.say('theirs', 'Hello')];
  await Promise.all([untilEnd(chat, 'ours', ours), untilEnd(chat, 'theirs', theirs)]);
  for (const runId of [theirs, TURN, 'x', ours.toUpperCase()]) {
    const answer = await chat.post(`/threads/ours/runs/${runId}/feedback`, {});
    const message = `Thread ours has no run ${runId}.`;
    expect([answer.status, await answer.json()]).toEqual([404, { error: 'no_such_run', message, detail: message }]);
  }
  expect((await chat.post(`/threads/a%2Fb/runs/${ours}/feedback`, {})).status).toBe(422);
  expect((await chat.post(`/threads/ours/runs/${ours}/feedback`, {})).status).toBe(200);
  await receiver.close();
});

test('a service for traces that is away is told of, where it was asked for', async () => {
  const traces = new TraceService({ endpoint: 'http://127.0.0.1:9' });
  await using chat = await ChatServer.start({ traces });
  const runId = await chat.say('t', 'Hello');
  await untilEnd(chat, 't', runId);
  const answer = await chat.post(`/threads/t/runs/${runId}/feedback`, {});
  expect([answer.status, await answer.json()]).toEqual([502, expect.objectContaining({ error: 'bad_gateway' })]);
  const turn = turnOf();
  const traced = await ask(chat, 't', 'Hello', { 'runspan-trace': turn.dotted_order });
  await untilEnd(chat, 't', traced.runId);
  expect((await chat.post('/threads/t/turns', { ...turn, run_id: traced.runId })).status).toBe(502);
  expect(chat.lines).toEqual([]);
  expect((await chat.post('/threads/t/runs/x/feedback', {})).status).toBe(404);
});

test('without tracing there is nothing to rate', async () => {
  await using chat = await ChatServer.start();
  expect(await (await fetch(`${chat.url}/api/info`)).json()).toEqual({
    agent: 'supervisor',
    model: { name: '', is_local: false },
    tracing: { is_on: false, viewer_url: null },
    feedback_keys: [],
  });
  expect((await chat.post(`/threads/t/runs/${TURN}/feedback`, {})).status).toBe(404);
  expect((await chat.post('/threads/t/turns', { ...turnOf(), run_id: TURN })).status).toBe(404);
});

/** Says something in a thread, as a page or a service does that traces. */
async function ask(
  chat: ChatServer,
  threadId: string,
  content: string,
  headers: Readonly<Record<string, string>>,
): Promise<{ runId: string; traceId: string }> {
  const params = { input: { messages: [{ role: 'user', content }] } };
  const answer = await chat.post(`/threads/${threadId}/commands`, { id: 1, method: 'run.start', params }, headers);
  const { result, meta } = (await answer.json()) as { result: { run_id: string }; meta: { trace_id: string } };
  return { runId: result.run_id, traceId: meta.trace_id };
}
