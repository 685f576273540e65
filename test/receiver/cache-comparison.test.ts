import { describe, expect, test } from 'vitest';
import { type CacheComparison, DEFAULT_SCOPE, MemoryStore, type RunFields, type RunOperation } from '#src/receiver.ts';
import { id, post, second } from './conformance/support.ts';
import { openLocalStore } from './local-store.ts';
import { startService } from './service.ts';
import { call, start } from './wire.ts';

interface CallIdea extends RunFields {
  /** Start in seconds. */
  at: number;
  seconds?: number;
  text?: string;
  tokens?: number;
  cached?: number;
  metadata?: Record<string, unknown>;
  parent?: number;
}

/** A model call of the thread `t`, with the user's message `text`. */
function modelCall(index: number, idea: CallIdea): RunOperation {
  const { at, seconds = 1, text = 'Why?', tokens = 2_000, cached, metadata, ...fields } = idea;
  const details = cached === undefined ? {} : { input_token_details: { cache_read: cached } };
  return post(index, {
    name: 'gpt-5',
    run_type: 'llm',
    start_time: second(at),
    end_time: second(at + seconds),
    inputs: { messages: [{ role: 'user', content: text }] },
    outputs: { usage_metadata: { input_tokens: tokens, output_tokens: 1, total_tokens: tokens + 1, ...details } },
    extra: { metadata: { ls_model_name: 'gpt-5', thread_id: 't', ...metadata } },
    ...fields,
  });
}

async function ask(operations: RunOperation[], of = 2, kind = 'memory'): Promise<CacheComparison> {
  const store = kind === 'memory' ? new MemoryStore() : await openLocalStore();
  await store.apply(DEFAULT_SCOPE, operations);
  const { status, body } = await call(`${(await start({ store })).url}/query/runs/${id(of)}/cache`, 'GET');
  expect(status).toBe(200);
  return body as CacheComparison;
}

const earlier = { at: 0 };
const later = { at: 42, text: 'Who?' };

test.each(['memory', 'sqlite'])('the prompt is compared with that of the earlier call: %s', async (kind) => {
  expect(await ask([modelCall(1, earlier), modelCall(2, { ...later, cached: 500 })], 2, kind)).toEqual({
    previous_run_id: id(1),
    previous_trace_id: id(1),
    seconds_before: 42,
    cached_share: 0.25,
    difference: { place: 'message 1 (user)', before: 'Why?', after: 'Who?', equal_share: 0.5 },
    text: `The prompt differs from that of the call 42 s earlier from message 1 (user) on: "Why?" became "Who?". The equal beginning is 50 % of the earlier prompt's text. 25 % of the input tokens were read from the cache.`,
  });
});

test('a call that reports no cached tokens is not said to miss the cache', async () => {
  const { text, ...answer } = await ask([modelCall(1, earlier), modelCall(2, later)]);
  expect(answer).not.toHaveProperty('cached_share');
  expect(text).not.toContain('cache');
});

test('a run without a thread is compared with calls of its trace', async () => {
  const metadata = { thread_id: undefined };
  const operations = [
    modelCall(1, { at: 0, metadata }),
    modelCall(2, { ...later, metadata, parent: 1 }),
    modelCall(3, { at: 20, metadata, text: 'Who?' }),
  ];
  expect(await ask(operations)).toMatchObject({ previous_run_id: id(1), difference: { before: 'Why?' } });
});

describe('no difference is reported', () => {
  test.each<[title: string, before: CallIdea, after: CallIdea]>([
    ['if the cache served 80 % of the earlier prompt', earlier, { ...later, cached: 1_600 }],
    ['if the earlier prompt is the beginning', earlier, { ...later, text: 'Why? Tell me.', cached: 0 }],
  ])('%s', async (_, before, after) => {
    const answer = await ask([modelCall(1, before), modelCall(2, after)]);
    expect(answer.previous_run_id).toBe(id(1));
    expect(answer).not.toHaveProperty('difference');
    expect(answer).not.toHaveProperty('text');
  });
  test('but below 80 %', async () => {
    expect(await ask([modelCall(1, earlier), modelCall(2, { ...later, cached: 1_599 })])).toHaveProperty('difference');
  });
});

describe('there is no comparison', () => {
  test.each<[title: string, before: CallIdea, after: CallIdea]>([
    ['with a call 5 minutes and 1 second earlier', earlier, { ...later, at: 301 }],
    ['with a call that was running', { ...earlier, seconds: 43 }, later],
    ['with a prompt of 1,023 tokens', { ...earlier, tokens: 1_023 }, later],
    ['with a call of another model', { ...earlier, metadata: { ls_model_name: 'gpt-5-mini' } }, later],
    ['with a call of another thread', { ...earlier, metadata: { thread_id: 'u' } }, later],
    ['with a call of another project', { ...earlier, session_name: 'lab' }, later],
    ['with a call of another source', { ...earlier, metadata: { recorded_by: ['fetch'] } }, later],
    ['with a run that is not a model call', { ...earlier, run_type: 'chain' }, later],
    ['of a run that is not a model call', earlier, { ...later, run_type: 'chain' }],
    ['of a call without input tokens', earlier, { ...later, outputs: {} }],
    ['of a request of more than 2 MB', earlier, { ...later, text: 'x'.repeat(2_000_000) }],
    ['with a request of more than 2 MB', { ...earlier, text: 'x'.repeat(2_000_000) }, later],
  ])('%s', async (_, before, after) => {
    expect(await ask([modelCall(1, before), modelCall(2, after)])).toEqual({});
  });

  test('but up to 5 minutes and from 1,024 tokens', async () => {
    const operations = [modelCall(1, { ...earlier, tokens: 1_024 }), modelCall(2, { ...later, at: 300 })];
    expect(await ask(operations)).toHaveProperty('difference');
  });
});

test('of several earlier calls, the one with the longest common beginning counts', async () => {
  const operations = [
    modelCall(1, { at: 0, text: 'You plan trips to Rome.' }),
    modelCall(3, { at: 10, text: 'You rate hotels.' }),
    modelCall(2, { at: 42, text: 'You plan trips to Oslo.' }),
  ];
  expect(await ask(operations)).toMatchObject({ previous_run_id: id(1), seconds_before: 42 });
});

test('an unknown run gets status 404', async () => {
  const { url } = await start();
  expect((await call(`${url}/query/runs/${id(1)}/cache`, 'GET')).status).toBe(404);
});

test('a call of another tenant or project is not compared', async () => {
  const service = await startService();
  const shop = modelCall(1, earlier);
  const lab = modelCall(2, { ...later, session_name: 'lab' });
  await service.store.apply({ tenant: 'acme' }, [shop, lab, modelCall(3, later)]);
  await service.store.apply({ tenant: 'bolt' }, [modelCall(4, later)]);
  const askWith = async (fields: { tenant: string; project?: string }, index: number) => {
    const key = service.addKey({ ...fields, permission: 'read' }).text;
    return call(`${service.url}/query/runs/${id(index)}/cache`, 'GET', undefined, { 'x-api-key': key });
  };
  expect((await askWith({ tenant: 'acme' }, 3)).body).toMatchObject({ previous_run_id: id(1) });
  expect((await askWith({ tenant: 'acme', project: 'lab' }, 3)).status).toBe(404);
  expect((await askWith({ tenant: 'acme', project: 'lab' }, 2)).body).toEqual({});
  expect((await askWith({ tenant: 'bolt' }, 4)).body).toEqual({});
  expect((await askWith({ tenant: 'bolt' }, 1)).status).toBe(404);
});
