import { describe, expect, test } from 'vitest';
import { RunState } from '../../src/receiver/run-state.ts';
import { MemoryStore, type RunFields, type RunOperation, type StoredRun } from '../../src/receiver.ts';
import { END, makeRun, ROOT, START } from './wire.ts';

const { id: _, ...WHOLE } = makeRun();

function post(fields: RunFields = {}): RunOperation {
  return { kind: 'post', id: ROOT, fields: { ...WHOLE, ...fields }, attachments: [] };
}

function patch(fields: RunFields): RunOperation {
  return { kind: 'patch', id: ROOT, fields, attachments: [] };
}

/** What a store makes of the operations, taken one by one. */
async function merged(...operations: RunOperation[]): Promise<StoredRun | undefined> {
  const store = new MemoryStore();
  for (const operation of operations) await store.apply([operation]);
  return (await store.runs({}))[0];
}

describe('the messages of a run add up', () => {
  const ended = { outputs: { b: 2 }, end_time: END };

  test('to the same, in whatever order and however often they come', async () => {
    const whole = { id: ROOT, ...WHOLE, inputs: { a: 1 }, ...ended };
    const a = post({ inputs: { a: 1 } });
    const b = patch(ended);
    for (const order of [[a, b], [b, a], [a, a, b], [a, b, a], [b, a, b, a], [post({ inputs: { a: 1 }, ...ended })]]) {
      expect(await merged(...order)).toEqual(whole);
    }
  });

  test('and one that leaves a field out takes nothing away', async () => {
    const error = { error: 'Error: no', tags: ['x'] };
    expect(await merged(post({ inputs: { a: 1 } }), patch(error), patch(ended), post())).toMatchObject({
      inputs: { a: 1 },
      ...error,
      ...ended,
    });
  });

  test('where both tell a field the patch is right, and of two patches the later', async () => {
    expect(await merged(patch({ name: 'b', tags: ['b'] }), post({ name: 'a', tags: ['a'] }))).toMatchObject({
      name: 'b',
      tags: ['b'],
    });
    expect(await merged(post(), patch({ outputs: { a: 1 } }), patch({ outputs: { b: 2 } }))).toMatchObject({
      outputs: { b: 2 },
    });
  });

  test('within extra and metadata key by key', async () => {
    const first = post({ extra: { metadata: { a: 1, b: 1 }, runtime: { sdk: 'x' }, x: 1 } });
    const second = patch({ extra: { metadata: { b: 2, c: 2 }, y: 2 } });
    const sum = { metadata: { a: 1, b: 2, c: 2 }, runtime: { sdk: 'x' }, x: 1, y: 2 };
    expect((await merged(first, second))?.extra).toEqual(sum);
    expect((await merged(second, first))?.extra).toEqual(sum);
    expect((await merged(first, patch({ extra: { runtime: { sdk: 'y' } } })))?.extra).toMatchObject({
      metadata: { a: 1, b: 1 },
      runtime: { sdk: 'y' },
    });
  });
});

describe('a run can be seen', () => {
  test('not by a patch that tells only its end', async () => {
    expect(await merged(patch({ outputs: {}, end_time: END }))).toBeUndefined();
  });

  test.each(['name', 'run_type', 'start_time'] as const)('not without its %s', async (field) => {
    const { [field]: _left, ...fields } = WHOLE as RunFields;
    expect(await merged(patch(fields))).toBeUndefined();
  });

  test('by a patch that stands alone', async () => {
    expect(await merged(patch({ ...(WHOLE as RunFields), end_time: END }))).toEqual({
      id: ROOT,
      ...WHOLE,
      inputs: {},
      start_time: START,
      end_time: END,
    });
  });
});

describe('the weight of a run', () => {
  const attach = (name: string, size: number, mimeType = 'x/y'): RunOperation => ({
    ...post(),
    attachments: [{ name, mimeType, bytes: new Uint8Array(size) }],
  });
  const weight = (...operations: RunOperation[]): number => {
    const run = new RunState(ROOT);
    for (const operation of operations) run.take(operation);
    return run.sizeBytes;
  };
  const bare = weight(post());

  test('has for each attachment its bytes, name and type and 300 more', () => {
    expect(weight(attach('', 0, '')) - bare).toBe(300);
    expect(weight(attach('grün', 1_000, 'text/plain')) - bare).toBe(300 + 5 + 10 + 1_000);
    expect(weight(attach('a', 1), attach('b', 2)) - bare).toBe(2 * (300 + 1 + 3) + 3);
  });

  test('has an attachment that comes again once, as it came last', () => {
    expect(weight(attach('a', 1_000, 'text/plain'), attach('a', 1))).toBe(weight(attach('a', 1)));
  });

  test('has a field that comes again once, and one of a post and a patch twice', () => {
    const inputs = { inputs: { a: 'x'.repeat(100) } };
    expect(weight(post(inputs), post(inputs))).toBe(weight(post(inputs)));
    expect(weight(post(inputs), patch(inputs)) - weight(post(inputs))).toBe(weight(post(inputs)) - bare);
  });
});

test('attachments of all messages are kept; a name that comes again is replaced', async () => {
  const store = new MemoryStore();
  const attach = (name: string, text: string): RunOperation => ({
    ...post(),
    attachments: [{ name, bytes: new TextEncoder().encode(text), mimeType: 'text/plain' }],
  });
  for (const operation of [attach('a', 'one'), attach('b', 'two'), attach('a', 'three')])
    await store.apply([operation]);
  expect((await store.trace(ROOT))[0]?.attachments).toEqual([
    { name: 'a', mime_type: 'text/plain', size: 5 },
    { name: 'b', mime_type: 'text/plain', size: 3 },
  ]);
  const attachment = await store.attachment(ROOT, 'a');
  expect(new TextDecoder().decode(attachment?.bytes)).toBe('three');
  attachment?.bytes.fill(0);
  expect(new TextDecoder().decode((await store.attachment(ROOT, 'a'))?.bytes)).toBe('three');
  expect(await store.attachment(ROOT, 'c')).toBeUndefined();
});
