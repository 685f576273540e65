import { describe, expect, test } from 'vitest';
import type { RunFields, RunOperation, Store, StoredRun } from '../../src/receiver.ts';
import { END, makeRun, ROOT, START } from './wire.ts';

const { id: _, ...WHOLE } = makeRun();

function post(fields: RunFields = {}): RunOperation {
  return { kind: 'post', id: ROOT, fields: { ...WHOLE, ...fields }, attachments: [] };
}

function patch(fields: RunFields): RunOperation {
  return { kind: 'patch', id: ROOT, fields, attachments: [] };
}

/** What every store makes of the messages of a run. */
export function describeMerging(makeStore: () => Promise<Store>): void {
  /** What a store makes of the operations, taken one by one. */
  async function merged(...operations: RunOperation[]): Promise<StoredRun | undefined> {
    const store = await makeStore();
    for (const operation of operations) await store.apply([operation]);
    return (await store.runs({}))[0];
  }

  describe('the messages of a run add up', () => {
    const ended = { outputs: { b: 2 }, end_time: END };

    test('to the same, in whatever order and however often they come', async () => {
      const whole = { id: ROOT, ...WHOLE, inputs: { a: 1 }, ...ended };
      const a = post({ inputs: { a: 1 } });
      const b = patch(ended);
      for (const order of [
        [a, b],
        [b, a],
        [a, a, b],
        [a, b, a],
        [b, a, b, a],
        [post({ inputs: { a: 1 }, ...ended })],
      ]) {
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

  test('attachments of all messages are kept; a name that comes again is replaced', async () => {
    const store = await makeStore();
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
}
