import { DEFAULT_SCOPE, type Feedback } from 'runspan/receiver';
import { expect, test } from 'vitest';
import { openPage } from './page.ts';
import { idOf, run } from './runs.ts';

const THREADS = 100;
const TURNS = 50;

/** Returns turn `turn` of thread `thread`. The threads take turns, so the last thread has the latest turn. */
function turnOf(thread: number, turn: number, fields: Parameters<typeof run>[1] = {}) {
  const number = turn * THREADS + thread + 1;
  const history = Array.from({ length: turn }, (_, at) => [
    { role: 'user', content: `question ${at} of ${thread}` },
    { role: 'assistant', content: `answer ${at} of ${thread}` },
  ]).slice(-2);
  const usage_metadata = { input_tokens: 1, output_tokens: 2, total_tokens: 3, total_cost: 0.01 };
  return run(number, {
    at: number * 1_000,
    ms: 100 + turn,
    name: 'chat',
    inputs: { messages: [...history.flat(), { role: 'user', content: `question ${turn} of ${thread}` }] },
    outputs: { role: 'assistant', content: `answer ${turn} of **${thread}**`, usage_metadata },
    extra: { metadata: { thread_id: `conversation ${thread}`, user_id: `user ${thread % 3}` } },
    ...fields,
  });
}

const many = Array.from({ length: TURNS }, (_, turn) =>
  Array.from({ length: THREADS }, (_, thread) => turnOf(thread, turn)),
).flat();

test('the threads of a receiver are listed, the latest first, and open as conversations', async () => {
  const { page, see } = await openPage(many, { path: '/?view=threads' });
  const rows = page.locator('.threads tbody tr');
  await rows.nth(THREADS - 1).waitFor();
  expect(await rows.first().textContent()).toMatch(
    /conversation 99question 0 of 99→answer 49 of \*\*99\*\*user 050.*124 ms150\$0\.5/,
  );
  await page.getByRole('link', { name: 'user 1', exact: true }).first().click();
  await expect.poll(() => rows.count()).toBe(33);
  await page.getByRole('link', { name: 'conversation 97', exact: true }).click();
  await see('question 49 of 97');
  const conversation = page.getByRole('region', { name: 'Conversation' });
  await expect.poll(() => conversation.locator('.turn').last().locator('strong').textContent()).toBe('97');
  expect(await conversation.locator('.turn').count()).toBe(TURNS);
  expect(await conversation.locator('.turn').last().locator('.message').count()).toBe(2);
  expect(await page.locator('.thread-bar').textContent()).toMatch(/user 1.*50 turns.*p50 124 ms.*150 tokens.*\$0\.50/);
  await conversation.locator('.turn').last().getByRole('link').click();
  await page.getByRole('treegrid').waitFor();
  await page.keyboard.press('Escape');
  await see('question 49 of 97');
  await page.keyboard.press('Escape');
  await expect.poll(() => rows.count()).toBe(33);
});

test('a new turn appears at the end of the conversation, and earlier turns are loaded on request', async () => {
  const long = Array.from({ length: 130 }, (_, turn) => turnOf(1, turn));
  const { page, store, see } = await openPage(long, {
    path: `/?view=threads&thread=${encodeURIComponent('conversation 1')}`,
  });
  await see('question 129 of 1');
  const isInView = async (text: string): Promise<boolean> => {
    const box = await page.getByText(text, { exact: true }).boundingBox();
    return box !== null && box.y >= 0 && box.y + box.height <= 800;
  };
  await expect.poll(() => isInView('question 129 of 1')).toBe(true);
  const failed = { error: 'TypeError: no\n  at x', outputs: {} };
  await store.apply(DEFAULT_SCOPE, [turnOf(1, 130, failed)]);
  await see('TypeError: no');
  await expect.poll(() => isInView('TypeError: no')).toBe(true);
  const feedback = { id: idOf(1), run_id: idOf(130 * THREADS + 2), key: 'liked', score: 0 };
  const now = { created_at: '2026-11-20T07:00:00Z', modified_at: '2026-11-20T07:00:00Z' };
  await store.addFeedback(DEFAULT_SCOPE, { ...feedback, ...now } as Feedback);
  await see('liked 0');
  const turns = page.locator('.turn');
  await expect.poll(() => turns.count()).toBe(101);
  const more = page.getByRole('button', { name: 'Show earlier turns' });
  await more.scrollIntoViewIfNeeded();
  await expect.poll(() => isInView('question 31 of 1')).toBe(true);
  const position = async () => (await page.getByText('question 31 of 1', { exact: true }).boundingBox())?.y ?? 0;
  const before = await position();
  await more.click();
  await expect.poll(() => turns.count()).toBe(131);
  expect(await turns.first().textContent()).toMatch(/^1success.*question 0 of 1/);
  expect(Math.abs((await position()) - before)).toBeLessThan(5);
});

test('users lead to their threads', async () => {
  const { page } = await openPage(many.slice(0, 200), { path: '/?view=users' });
  const rows = page.locator('.threads tbody tr');
  await expect.poll(() => rows.count()).toBe(3);
  expect(await rows.first().textContent()).toMatch(/^user 068.*100 ms.*ThreadsTracesStatistics$/);
  await rows.first().getByRole('link', { name: 'user 0' }).click();
  await expect.poll(() => rows.count()).toBe(34);
  expect(page.url()).toContain('view=threads');
});
