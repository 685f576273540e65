import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { expect } from 'vitest';
import type { AgentServer } from '#src/clients/agent-server/agent-server.ts';
import type { AssistantFunction } from '#src/testing/platform/assistant.ts';
import { readAll } from '../support/read-all.ts';

export const ask = (content: string) =>
  ({ assistant_id: 'agent', input: { messages: [{ type: 'human', content }] } }) as const;

const ASK = ask('weather?');
const ANSWER = 'It is sunny in Kiel.';
const NOT_FOUND = { code: 'RUNSPAN_NOT_FOUND' };
const CONFLICT = { code: 'RUNSPAN_CONFLICT' };

const lastOf = (values: Record<string, unknown>): unknown =>
  (values.messages as { content: unknown }[]).at(-1)?.content;

/** An assistant with the answers of `test/peers/agent-server/graph.mjs`. */
export const weather: AssistantFunction = async function* (input, { emit, interrupt, signal }) {
  const { messages } = input as { messages: { content: string }[] };
  const text = messages.at(-1)?.content ?? '';
  const say = (content: string) => ({ messages: [{ type: 'ai', content }] });
  if (text.includes('fail')) throw new RangeError('no such city');
  if (text.includes('approve')) return yield say(`You said ${interrupt({ question: 'May I?' })}.`);
  if (text.includes('wait')) await once(signal, 'abort');
  emit('custom', { progress: 'planned' });
  yield say('');
  for (let step = 0; step < 6; step++) emit('values|weather:1', { messages });
  yield say(ANSWER);
};

/** The answers of an agent server to the calls that the in-memory one implements, by group. */
export const answers: Readonly<Record<string, (server: AgentServer) => Promise<void>>> = {
  assistants: async ({ assistants }) => {
    const id = randomUUID();
    const wanted = { graph_id: 'agent', assistant_id: id, name: 'Skipper', metadata: { of: id } };
    expect(await assistants.create(wanted)).toMatchObject(wanted);
    await expect(assistants.create(wanted)).rejects.toMatchObject(CONFLICT);
    expect(await assistants.create({ ...wanted, if_exists: 'do_nothing' })).toMatchObject({ assistant_id: id });
    expect(await assistants.update(id, { name: 'Mate' })).toMatchObject({ name: 'Mate' });
    for (let count = 0; count < 2; count++) await assistants.create({ graph_id: 'agent', metadata: { of: id } });
    expect(await readAll(assistants.search({ metadata: { of: id }, limit: 2 }))).toHaveLength(3);
    expect(await assistants.count({ metadata: { of: id } })).toBe(3);
    await assistants.delete(id, { deleteThreads: true });
    await expect(assistants.get(id)).rejects.toMatchObject(NOT_FOUND);
  },
  threads: async ({ threads }) => {
    const of = randomUUID();
    const thread = { thread_id: of, metadata: { of } };
    expect(await threads.create(thread)).toMatchObject({ ...thread, status: 'idle' });
    await expect(threads.create(thread)).rejects.toMatchObject(CONFLICT);
    expect(await threads.create({ ...thread, if_exists: 'do_nothing' })).toMatchObject({ thread_id: of });
    await threads.update(of, { metadata: { b: 2 } });
    expect((await threads.search({ ids: [of], sort_by: 'created_at' })).items).toMatchObject([
      { metadata: { of, b: 2 } },
    ]);
    for (let count = 0; count < 2; count++) await threads.create({ metadata: { of } });
    expect(await threads.count({ metadata: { of } })).toBe(3);
    const pages = await readAll(threads.search({ metadata: { of }, limit: 2 }).pages());
    expect(pages.map(({ items }) => items.length)).toEqual([2, 1]);
    await threads.delete(of);
    await expect(threads.get(of)).rejects.toMatchObject(NOT_FOUND);
  },
  states: async ({ threads, runs }) => {
    const { thread_id: id } = await threads.create();
    expect(await threads.state(id)).toMatchObject({ values: {}, next: [], checkpoint: null });
    await runs.wait(id, ASK);
    const { values, checkpoint } = await threads.state(id);
    expect(lastOf(values)).toBe(ANSWER);
    const ids = (await readAll(threads.history(id, { limit: 1 }))).map((state) => state.checkpoint?.checkpoint_id);
    expect(ids.length).toBeGreaterThan(1);
    expect(new Set(ids).size).toBe(ids.length);
    expect((await threads.history(id, { limit: 1, metadata: {} })).items).toMatchObject([{ checkpoint }]);
    const change = { values: { messages: [{ type: 'human', content: 'and tomorrow?' }] }, as_node: 'answer' };
    const updated = await threads.updateState(id, change);
    const state = await threads.state(id);
    expect(state.checkpoint?.checkpoint_id).toBe(updated.checkpoint.checkpoint_id);
    expect(lastOf(state.values)).toBe('and tomorrow?');
  },
  runs: async ({ threads, runs }) => {
    const { thread_id: id } = await threads.create();
    const { run_id } = await runs.create(id, { ...ASK, multitask_strategy: 'enqueue', stream_resumable: true });
    const idsAfter = async (lastEventId: string) =>
      (await readAll(await runs.joinStream(id, run_id, { lastEventId }))).map((event) => event.id);
    const ids = await idsAfter('-1');
    expect(ids.slice(0, 3)).toEqual(['0', '1', '2']);
    expect(await idsAfter('1')).toEqual(ids.slice(2));
    expect(lastOf(await runs.join(id, run_id, { cancelOnDisconnect: false }))).toBe(ANSWER);
    expect(await runs.get(id, run_id)).toMatchObject({ run_id, thread_id: id, status: 'success' });
    expect(lastOf(await runs.wait(id, ASK))).toBe(ANSWER);
    expect(await runs.list(id, { limit: 10 }).toArray(10)).toHaveLength(2);
    await runs.delete(id, run_id);
    await expect(runs.get(id, run_id)).rejects.toMatchObject(NOT_FOUND);
    const other = (await threads.create()).thread_id;
    const waiting = await runs.create(other, ask('wait'));
    await runs.cancel(other, waiting.run_id, { wait: true, action: 'interrupt' });
    expect((await runs.get(other, waiting.run_id)).status).not.toBe('running');
  },
  streams: async ({ threads, runs }) => {
    const { thread_id: id } = await threads.create();
    const stream = await runs.stream(id, { ...ASK, stream_mode: 'values', stream_subgraphs: true });
    expect(stream).toMatchObject({ threadId: id, runId: expect.stringMatching(/^[0-9a-f-]{36}$/) });
    const events = await readAll(stream);
    expect(events[0]).toMatchObject({ event: 'metadata', data: { run_id: stream.runId } });
    expect(events.map(({ name }) => name)).toContainEqual(expect.stringMatching(/^values\|weather:/));
  },
  interrupts: async ({ threads, runs }) => {
    const { thread_id: id } = await threads.create();
    const question = { __interrupt__: [{ value: { question: 'May I?' } }] };
    expect(await runs.wait(id, ask('approve'))).toMatchObject(question);
    expect(await threads.get(id)).toMatchObject({ status: 'interrupted' });
    const events = await readAll(await runs.stream(id, { assistant_id: 'agent', command: { resume: 'yes' } }));
    expect(lastOf(events.at(-1)?.data as Record<string, unknown>)).toBe('You said yes.');
    expect(await threads.get(id)).toMatchObject({ status: 'idle' });
  },
  errors: async ({ threads, runs }) => {
    const { thread_id: id } = await threads.create();
    const failed = { code: 'RUNSPAN_RUN_FAILED', error: 'RangeError', detail: 'no such city' };
    await expect(runs.wait(id, ask('fail'))).rejects.toMatchObject(failed);
    const stream = await runs.stream(id, ask('fail'));
    const seen: unknown[] = [];
    const reading = (async () => {
      for await (const { event, data } of stream) seen.push({ event, data });
    })();
    await expect(reading).rejects.toMatchObject({ ...failed, runId: stream.runId, threadId: id });
    expect(seen.at(-1)).toMatchObject({ event: 'error', data: { error: 'RangeError', message: 'no such city' } });
    expect(await threads.get(id)).toMatchObject({ status: 'error' });
  },
  readersThatLeave: async ({ threads, runs }) => {
    const { thread_id: id } = await threads.create();
    const stream = await runs.stream(id, { ...ask('wait'), on_disconnect: 'cancel' });
    for await (const { event } of stream) if (event === 'values') break;
    // The in-memory server looks after half a second at the latest.
    const statusNow = async () => (await runs.get(id, String(stream.runId))).status;
    await expect.poll(statusNow).toBe('interrupted');
  },
  strategies: async ({ threads, runs }) => {
    const { thread_id: id } = await threads.create();
    const first = await runs.create(id, ask('wait'));
    await expect(runs.wait(id, { ...ASK, multitask_strategy: 'reject' })).rejects.toMatchObject({ status: 422 });
    const next = runs.wait(id, { ...ASK, multitask_strategy: 'enqueue' });
    expect(await threads.get(id)).toMatchObject({ status: 'busy' });
    await runs.cancel(id, first.run_id, { wait: true });
    expect(lastOf(await next)).toBe(ANSWER);
  },
  statelessRuns: async ({ statelessRuns: runs }) => {
    expect(lastOf(await runs.wait(ASK))).toBe(ANSWER);
    expect(await runs.batch([ASK, ASK])).toHaveLength(2);
    const { run_id } = await runs.create({ ...ASK, stream_resumable: true, on_completion: 'keep' });
    const [first] = await readAll(await runs.joinStream(run_id, { lastEventId: '-1' }));
    expect(first).toMatchObject({ event: 'metadata', data: { run_id } });
    const stream = await runs.stream(ASK);
    expect(stream).toMatchObject({ threadId: undefined, runId: expect.stringMatching(/^[0-9a-f-]{36}$/) });
    const last = (await readAll(stream)).findLast(({ event }) => event === 'values');
    expect(lastOf(last?.data as Record<string, unknown>)).toBe(ANSWER);
  },
  store: async ({ store }) => {
    const namespace = ['store', randomUUID()];
    expect(await store.get(namespace, 'a')).toBeUndefined();
    for (const key of ['a', 'b', 'c']) await store.put({ namespace, key, value: { key } });
    await store.put({ namespace, key: 'a', value: { key: 2 } });
    expect(await store.get(namespace, 'a')).toMatchObject({ namespace, key: 'a', value: { key: 2 } });
    const found = await store.search({ namespace_prefix: namespace, limit: 2 }).toArray(10);
    expect(found.map(({ key }) => key).sort()).toEqual(['a', 'b', 'c']);
    await store.delete(namespace, 'a');
    expect(await store.get(namespace, 'a')).toBeUndefined();
  },
};
