import { v7 as uuidv7 } from '@langchain/core/utils/uuid';
import { configure, shutdown } from 'runspan';
import { RunspanCallbackHandler } from 'runspan/langchain';
import { createReceiver } from 'runspan/receiver';
import { expect, test } from 'vitest';
import { TraceService } from '../../server/tracing/trace-service.ts';
import { openTraces } from '../../server/tracing/traces.ts';
import { ChatServer } from '../support/chat-server.ts';
import { untilEnd } from '../support/events.ts';
import { Gate, HeldModel } from '../support/held-model.ts';

const UNKNOWN_RUN = '01a1fd2b-5bb1-73bc-99e8-03d278e3a270';

/** The header of a caller that has a trace under way. */
function callerOf(traceId: string) {
  return { 'runspan-trace': `20261121T080000000000Z${traceId}` };
}

test('a turn is one trace, from the agent to the tools of a subagent, and can be rated', async () => {
  const receiver = await createReceiver();
  const exporter = configure({ endpoint: receiver.url, project: 'chat', tracing: true });
  const traces = new TraceService({ endpoint: receiver.url, viewerUrl: receiver.url });
  const callbacks = [new RunspanCallbackHandler()];
  await using chat = await ChatServer.start({ callbacks, traces });

  const { runId, traceId } = await ask(chat, 't', 'What is a heron?');
  await untilEnd(chat, 't', runId);
  const state = (await (await fetch(`${chat.url}/api/threads/t/state`)).json()) as { metadata: object };
  expect(state.metadata).toMatchObject({ run_id: runId, trace_id: traceId });
  expect(await exporter.flush()).toEqual({ ok: true, pending: 0 });

  const runs = await receiver.trace(traceId);
  const depth = ({ dotted_order = '' }) => dotted_order.split('.').length - 1;
  const drawn = runs.map((run) => `${'  '.repeat(depth(run))}${run.name} ${run.run_type}`);
  expect(drawn[0]).toBe('chat turn chain');
  expect(drawn.map((line) => line.trim())).toEqual(
    expect.arrayContaining(['task tool', 'researcher chain', 'search_docs tool', 'LocalModel llm']),
  );
  const run = runs.find(({ id }) => id === runId);
  expect(run).toMatchObject({ name: 'chat turn', trace_id: runId, session_name: 'chat' });

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

test.each([
  ['is recorded in a trace of its own', { joinTraces: false, sampleRate: 1 }],
  ['is recorded in the trace of its caller with joinTraces', { joinTraces: true, sampleRate: 1 }],
  ['is left to the sampling of the server', { joinTraces: false, sampleRate: 0 }],
])('a run whose request names a trace %s', async (_title, { joinTraces, sampleRate }) => {
  const receiver = await createReceiver();
  const exporter = configure({ endpoint: receiver.url, tracing: true, sampleRate });
  await using chat = await ChatServer.start({ callbacks: [new RunspanCallbackHandler()], joinTraces });
  const caller = uuidv7();
  const { runId, traceId } = await ask(chat, 't', 'Hello', callerOf(caller));
  await untilEnd(chat, 't', runId);
  await exporter.flush();
  expect(traceId).toBe(joinTraces ? caller : runId);
  const recorded = [...(await receiver.runs())].filter(({ name }) => name === 'chat turn');
  expect(recorded.map((run) => [run.id, run.trace_id])).toEqual(sampleRate === 0 ? [] : [[runId, traceId]]);
  await shutdown();
  await receiver.close();
});

test('data sent by a client never becomes a run', async () => {
  const receiver = await createReceiver();
  await using chat = await ChatServer.start({ traces: new TraceService({ endpoint: receiver.url }) });
  const { runId } = await ask(chat, 't', 'Hello');
  await untilEnd(chat, 't', runId);
  const [time, id] = ['2026-11-21T08:00:00.000000Z', runId];
  const dotted_order = callerOf(runId)['runspan-trace'];
  const seen = { id, dotted_order, run_id: id, start_time: time, end_time: time, inputs: { key: 'sk-1' }, outputs: {} };
  expect((await chat.post('/threads/t/turns', seen)).status).toBe(404);
  expect(await receiver.runs()).toEqual([]);
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
    joinTraces: true,
  });
  await ask(chat, 't', 'Hello', callerOf(uuidv7()));
  await gate.reached;
  const second = await chat.say('t', 'Hello');
  gate.open();
  await untilEnd(chat, 't', second);
  await exporter.flush();
  expect((await receiver.trace(second)).map(({ id }) => id)).toContain(second);
  await shutdown();
  await receiver.close();
});

test('without tracing there are no callbacks and no service', async () => {
  const { service, callbacks } = await openTraces({ env: { RUNSPAN_TRACING: 'false' }, tracePort: 0 });
  expect([service, callbacks]).toEqual([undefined, []]);
});

test('a key is never sent to another machine over plain HTTP, and the endpoint must be a URL without a user', async () => {
  const feedbackAt = async (RUNSPAN_ENDPOINT: string) => {
    const { service } = await openTraces({ env: { RUNSPAN_API_KEY: 'a-key', RUNSPAN_ENDPOINT }, tracePort: 0 });
    return service?.feedbackUrls(UNKNOWN_RUN);
  };
  await expect(feedbackAt('http://traces.example')).rejects.toThrow('allowInsecure');
  await expect(feedbackAt('http://user:secret@127.0.0.1:1')).rejects.toThrow(
    /^RUNSPAN_ENDPOINT has a user or a password, [^:]*$/,
  );
  await expect(feedbackAt('here')).rejects.toThrow('RUNSPAN_ENDPOINT is not a URL: here');
  await shutdown();
});

test('an address for feedback is given for the runs of the thread alone', async () => {
  const receiver = await createReceiver();
  await using chat = await ChatServer.start({ traces: new TraceService({ endpoint: receiver.url }) });
  const [ours, theirs] = [await chat.say('ours', 'Hello'), await chat.say('theirs', 'Hello')];
  await Promise.all([untilEnd(chat, 'ours', ours), untilEnd(chat, 'theirs', theirs)]);
  for (const runId of [theirs, UNKNOWN_RUN, 'x', ours.toUpperCase()]) {
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
  expect((await chat.post(`/threads/t/runs/${UNKNOWN_RUN}/feedback`, {})).status).toBe(404);
});

/** Says something in a thread, as a page or a service does that traces. */
async function ask(
  chat: ChatServer,
  threadId: string,
  content: string,
  headers: Readonly<Record<string, string>> = {},
): Promise<{ runId: string; traceId: string }> {
  const params = { input: { messages: [{ role: 'user', content }] } };
  const answer = await chat.post(`/threads/${threadId}/commands`, { id: 1, method: 'run.start', params }, headers);
  const { result, meta } = (await answer.json()) as { result: { run_id: string }; meta: { trace_id: string } };
  return { runId: result.run_id, traceId: meta.trace_id };
}
