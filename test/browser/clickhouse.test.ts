// The page of a receiver with a store in ClickHouse, which runs inside another process (see test/peers/clickhouse).
import { DEFAULT_SCOPE } from 'runspan/receiver';
import { afterAll, expect, test } from 'vitest';
import { ClickHouseStore } from '#src/receiver/store/clickhouse/clickhouse-store.ts';
import { startDatabase } from '../peers/clickhouse/database.ts';
import { type Opened, openPage } from './page.ts';
import { idOf, run } from './runs.ts';

const { url, setFaults, stop } = await startDatabase();
const store = await ClickHouseStore.open(url, { batchDelayMs: 0 });
afterAll(async () => {
  await store.close();
  await stop();
});

const turn = (thread_id: string, user_id: string) => ({ extra: { metadata: { thread_id, user_id } } });
const call = {
  run_type: 'llm',
  inputs: { messages: [{ role: 'user', content: 'Where is my parcel?' }] },
  outputs: { role: 'assistant', content: 'It is **near**', usage_metadata: { total_tokens: 30, total_cost: 0.5 } },
  extra: { metadata: { ls_model_name: 'gpt-x', user_id: 'ada' } },
};
await store.apply(DEFAULT_SCOPE, [
  run(1, { ms: 3_000, name: 'agent', tags: ['prod'], inputs: { question: 'parcel' }, ...turn('first', 'ada') }),
  run(2, { parent: 1, ms: 2_000, name: 'model', ...call }),
  run(3, { ms: 1_000, name: 'refund', error: 'PaymentError: no card', ...turn('second', 'bob') }),
  run(4, { ms: 5_000, name: 'agent', inputs: { question: 'lamp' }, ...turn('first', 'ada') }),
]);
const at = '2026-11-20T07:00:00Z';
const feedback = { id: 'f', run_id: idOf(1), key: 'liked', score: 1, created_at: at, modified_at: at };
await store.addFeedback(DEFAULT_SCOPE, feedback);
await store.settled();

const open = (path: string): Promise<Opened> => openPage([], { path, receiver: { store } });

test('lists are filtered and searched, and ask for a shorter time range if a query takes too long', async () => {
  const { page, rows, see, go } = await open('/');
  await expect
    .poll(() => rows.allTextContents())
    .toEqual([
      expect.stringMatching(/success[\s\S]*agent[\s\S]*lamp[\s\S]*5 s/),
      expect.stringMatching(/error[\s\S]*refund[\s\S]*PaymentError: no card[\s\S]*1 s/),
      expect.stringMatching(/success[\s\S]*agent[\s\S]*parcel[\s\S]*3 s[\s\S]*\$0\.50[\s\S]*liked 1[\s\S]*prod/),
    ]);
  for (const [filter, count] of [
    ['status:error user:bob', 1],
    ['tag:prod', 1],
    ['feedback.liked=1', 1],
    ['any(type:llm)', 1],
    ['parcel', 1],
    ['thread:first', 2],
  ] as const) {
    await go(`/?q=${encodeURIComponent(filter)}`);
    await expect.poll(() => rows.count(), { message: filter }).toBe(count);
  }
  await page.keyboard.press('/');
  await page.keyboard.type('mod');
  await page.getByRole('option', { name: /^model:/ }).waitFor();
  await setFaults({ code: 159, match: 'FROM runs' });
  await go('/');
  await see('The query reads too much: choose a shorter time range');
  await setFaults();
});

test('a trace shows its payloads and feedback, and new runs without a reload', async () => {
  const { page, see } = await open(`/?trace=${idOf(1)}&run=${idOf(2)}`);
  await page.getByRole('treegrid').waitFor();
  await see('Where is my parcel?');
  await page.locator('strong', { hasText: 'near' }).waitFor();
  await see('live');
  await store.apply(DEFAULT_SCOPE, [run(5, { parent: 1, name: 'newcomer' })]);
  await see('newcomer');
  await page.getByRole('button', { name: 'Good' }).click();
  await page.locator('.feedback li').filter({ hasText: 'rating' }).waitFor();
});

test('threads open as conversations, and statistics are grouped by user', async () => {
  const { page, see, go } = await open('/?view=threads');
  await expect.poll(() => page.locator('.threads tbody tr').allTextContents()).toHaveLength(2);
  await page.getByRole('link', { name: 'first', exact: true }).click();
  await page.getByRole('region', { name: 'Conversation' }).locator('.turn').nth(1).waitFor();
  await go('/?view=statistics&by=user');
  await page.getByRole('img', { name: 'Cost by user. ada: at most $0.50' }).waitFor();
  await see('bob');
});

test('a new trace appears in the list without a reload, and is deleted after a confirmation', async () => {
  const { page, rows, see } = await open('/');
  await see('live');
  await expect.poll(() => rows.count()).toBe(3);
  await store.apply(DEFAULT_SCOPE, [run(9, { at: 9_000, name: 'unwanted' }), run(10, { parent: 9 })]);
  await page.getByText('unwanted', { exact: true }).click();
  await page.keyboard.press('Enter');
  await page.getByRole('button', { name: 'Delete this trace' }).click();
  await page.getByRole('button', { name: 'Delete 2 runs' }).click();
  await see('Deleted 2 runs of 1 trace');
  await expect.poll(() => rows.count()).toBe(3);
  expect(await store.outline(DEFAULT_SCOPE, idOf(9))).toEqual([]);
});
