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

test('rows of threads and users are selected and opened with keys and clicks, and count failures', async () => {
  const failed = (parent: number, fields: object) => ({ parent, ms: 1, error: 'Error: no', ...fields });
  const operations = [
    turnOf(1, 0),
    turnOf(2, 0),
    run(900, failed(2, { at: 2_050, run_type: 'llm' })),
    turnOf(2, 1, { error: 'x' }),
  ];
  const { page, go } = await openPage(operations, { path: '/?view=threads' });
  const grid = page.getByRole('grid');
  const rows = grid.locator('tbody tr');
  await expect.poll(() => rows.locator('.status').allTextContents()).toEqual(['1 error', '1 failed below']);
  await page.keyboard.press('j');
  await page.keyboard.press('j');
  expect(await grid.getAttribute('aria-activedescendant')).toBe(await rows.nth(1).getAttribute('id'));
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { name: 'conversation 1' }).waitFor();
  await page.keyboard.press('Escape');
  await rows.first().locator('td').last().click();
  await page.getByRole('heading', { name: 'conversation 2' }).waitFor();
  await go('/?view=users');
  await rows.nth(1).waitFor();
  await page.keyboard.press('j');
  await page.keyboard.press('Enter');
  await expect.poll(() => new URL(page.url()).searchParams.get('q')).toBe('user:"user 2"');
  await page.keyboard.press('Escape');
});

test('a user is deleted with each trace in which a run has the user', async () => {
  const ofAda = { extra: { metadata: { user_id: 'ada' } } };
  const operations = [run(1, { ms: 5 }), run(2, { parent: 1, ms: 1, ...ofAda }), run(3, { ms: 5, ...ofAda }), run(4)];
  const { page } = await openPage(operations, { path: '/?view=users' });
  await page.getByRole('button', { name: 'Delete the user ada' }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByText('This deletes 3 runs of 2 traces: each trace in which any run has this user, with').waitFor();
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
