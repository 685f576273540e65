import { randomUUID } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { MemoryStore, type RunOperation, type Store } from '#src/receiver.ts';
import { PROGRAM_ENDED } from '#src/run/record.ts';
import { openLocalStore } from './local-store.ts';

const ID = '019aaaaa-0000-7000-8000-000000000001';
const [STARTED, INTERRUPTED, ENDED] = [1, 2, 3].map((second) => `2026-11-20T07:22:0${second}.000000Z`);

const message = (kind: 'post' | 'patch', fields: object): RunOperation => ({ kind, id: ID, fields, attachments: [] });
const START = { name: 'ask', run_type: 'chain', start_time: STARTED, trace_id: ID } as const;
const start = message('post', START);
const interruption = message('post', { end_time: INTERRUPTED, error: PROGRAM_ENDED });

/** The messages that end a run. */
const ENDS: [string, RunOperation][] = [
  ['a patch', message('patch', { end_time: ENDED, outputs: { a: 1 } })],
  ['a patch with an error', message('patch', { end_time: ENDED, error: 'Error: no' })],
  [
    'a post of the whole run',
    message('post', { ...START, end_time: ENDED, extra: { metadata: { end_reason: 'cancelled' } } }),
  ],
];

const orders = <Item>(items: readonly Item[]): Item[][] =>
  items.length === 0
    ? [[]]
    : items.flatMap((item, at) => orders(items.toSpliced(at, 1)).map((others) => [item, ...others]));

async function runAfter(store: Store, messages: readonly RunOperation[]): Promise<unknown> {
  const scope = { tenant: randomUUID() };
  for (const one of messages) await store.apply(scope, [one]);
  const { n: _, ...details } = (await store.details(scope, ID)) as object as { n?: number };
  return details;
}

describe.each<[string, () => Promise<Store>]>([
  ['a memory store', async () => new MemoryStore()],
  ['a store on disk', () => openLocalStore()],
])('in %s, a run that was open when its program ended', (_, makeStore) => {
  test('is interrupted', async () => {
    const run = await runAfter(await makeStore(), [start, interruption, interruption, start]);
    expect(run).toMatchObject({ status: 'interrupted', end_time: INTERRUPTED, error: PROGRAM_ENDED });
  });

  test.each(ENDS)('has the end of %s, in whatever order the messages arrive', async (_, end) => {
    const store = await makeStore();
    const expected = await runAfter(store, [start, end]);
    for (const order of orders([start, interruption, end])) expect(await runAfter(store, order)).toEqual(expected);
  });
});
