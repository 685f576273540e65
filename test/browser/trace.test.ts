import { expect, test } from 'vitest';
import { openPage, rowCount } from './page.ts';
import { idOf, run } from './runs.ts';

/** One trace: a root with hundreds of steps, each with calls below it. */
function largeTrace(count: number) {
  const operations = [run(1, { name: 'root', ms: count })];
  for (let index = 2; index <= count; index++) {
    const isStep = index % 50 === 2;
    operations.push(run(index, { parent: isStep ? 1 : index - ((index - 2) % 50), ms: 3 }));
  }
  return operations;
}

test('10 000 runs are a tree with under 100 rows in the document, and no payload is fetched but that of the run that is read', async () => {
  const { page, requests } = await openPage(largeTrace(10_000), { path: `/?trace=${idOf(1)}` });
  await page.getByText('10,000 runs').waitFor();
  await page.getByText('{}').waitFor();
  expect(await rowCount(page)).toBeLessThan(100);
  await page.locator('.tree-rows').evaluate((element) => element.scrollTo({ top: 1e7 }));
  await page.getByText('run 10000', { exact: true }).waitFor();
  expect(await rowCount(page)).toBeLessThan(100);
  const payloads = requests.filter((request) => /\/(inputs|outputs|events)$/.test(new URL(request.url()).pathname));
  expect(payloads.map((request) => new URL(request.url()).pathname)).toEqual([`/query/runs/${idOf(1)}/inputs`]);
});

test('a payload of 20 MB is fetched when its run is chosen, and shown in part', async () => {
  const items = Array.from({ length: 20_000 }, (_, index) => ({ index, text: 'x'.repeat(1_000) }));
  const { page, requests } = await openPage(
    [run(1, { ms: 9 }), run(2, { parent: 1, ms: 3, inputs: { items }, outputs: { text: 'y'.repeat(5_000_000) } })],
    { path: `/?trace=${idOf(1)}` },
  );
  await page.getByText('run 2', { exact: true }).waitFor();
  await page.getByRole('heading', { name: 'Inputs' }).waitFor();
  const fetched = () =>
    requests
      .filter((request) => request.url().includes(`${idOf(2)}/`))
      .map((request) => request.url().split('/').at(-1));
  expect(fetched()).toEqual([]);
  await page.keyboard.press('j');
  await page.getByText('items:').waitFor();
  expect(await rowCount(page)).toBeLessThan(100);
  await page.getByText('show more').first().waitFor();
  expect(await page.locator('main').evaluate((element) => (element.textContent ?? '').length)).toBeLessThan(100_000);
  expect(new Set(fetched())).toEqual(new Set(['inputs', 'outputs']));
});

const small = [
  run(1, { name: 'agent', ms: 1_000 }),
  run(2, { parent: 1, name: 'plan', ms: 100 }),
  run(3, {
    parent: 2,
    name: 'think',
    run_type: 'llm',
    ms: 50,
    inputs: { messages: [{ role: 'user', content: 'Find the needle' }] },
    outputs: { content: 'Found **it**' },
  }),
  run(4, { parent: 1, name: 'act', run_type: 'tool', ms: 200, error: 'ToolError: broken\n    at act (app.js:1:1)' }),
  run(5, { parent: 1, name: 'wait' }),
  run(6, {
    parent: 1,
    name: 'lost',
    ms: 5,
    extra: { metadata: { end_reason: 'interrupted' } },
    error: 'Interrupted: SIGTERM',
  }),
  run(7, {
    parent: 1,
    name: 'left',
    ms: 5,
    extra: { metadata: { end_reason: 'cancelled' } },
    error: 'AbortError: stop',
  }),
  run(8, { parent: 1, name: 'half', ms: 5, error: 'Incomplete: its program went on' }),
];

test('how a run stands is told by words', async () => {
  const { page } = await openPage(small, { path: `/?trace=${idOf(1)}` });
  const row = (name: string) => page.getByRole('row').filter({ hasText: new RegExp(`^\\W*${name}`) });
  for (const [name, status] of [
    ['act', 'error'],
    ['wait', 'pending'],
    ['lost', 'interrupted'],
    ['left', 'cancelled'],
    ['half', 'incomplete'],
  ] as const) {
    await row(name).getByText(status, { exact: true }).waitFor();
  }
});

test('keys walk through the tree, close and open it', async () => {
  const { page } = await openPage(small, { path: `/?trace=${idOf(1)}` });
  const tree = page.getByRole('treegrid');
  await page.getByText('think', { exact: true }).waitFor();
  const active = () => tree.getAttribute('aria-activedescendant');
  await page.keyboard.press('j');
  await expect.poll(active).toBe(`run-${idOf(2)}`);
  await page.keyboard.press('h');
  await expect.poll(() => page.getByText('think', { exact: true }).count()).toBe(0);
  expect(await page.locator(`#run-${idOf(2)}`).getAttribute('aria-expanded')).toBe('false');
  await page.keyboard.press('l');
  await page.keyboard.press('l');
  await expect.poll(active).toBe(`run-${idOf(3)}`);
  expect(await page.locator(`#run-${idOf(3)}`).getAttribute('aria-level')).toBe('3');
  await page.keyboard.press('h');
  await expect.poll(active).toBe(`run-${idOf(2)}`);
  await page.keyboard.press('n');
  await expect.poll(active).toBe(`run-${idOf(4)}`);
  await page.getByText('ToolError: broken').waitFor();
  await page.getByText('at act (app.js:1:1)').waitFor();
});

test('errors alone, and what words are in, payloads among them', async () => {
  const { page } = await openPage(small, { path: `/?trace=${idOf(1)}` });
  const names = () => page.locator('.run-name').allTextContents();
  await page.getByText('think', { exact: true }).waitFor();
  await page.keyboard.press('e');
  await expect.poll(names).toEqual(['agent', 'act', 'lost', 'half']);
  await page.keyboard.press('e');
  await page.keyboard.press('/');
  await page.keyboard.type('needle');
  await expect.poll(names).toEqual(['agent', 'plan', 'think']);
});

test('a call of a model is read as a conversation, its text as Markdown or as it is', async () => {
  const { page } = await openPage(small, { path: `/?trace=${idOf(1)}&run=${idOf(3)}` });
  await page.getByText('Find the needle').waitFor();
  await page.locator('strong', { hasText: 'it' }).waitFor();
  await page.keyboard.press('m');
  await page.getByText('Found **it**').waitFor();
  await page.getByRole('button', { name: 'JSON' }).first().click();
  await page.getByText('messages:').waitFor();
});

test('a trace grows while it is looked at, and what is read stays', async () => {
  const { page, store } = await openPage(small, { path: `/?trace=${idOf(1)}&run=${idOf(3)}` });
  await page.getByText('Find the needle').waitFor();
  await store.apply([run(20, { parent: 1, name: 'newcomer', ms: 1 })]);
  await page.getByText('newcomer', { exact: true }).waitFor({ timeout: 1_000 });
  await page.getByText('Find the needle').waitFor();
});

test('no payload is fetched for a run that is out of sight', async () => {
  const { page, requests } = await openPage(small, {
    path: `/?trace=${idOf(1)}`,
    viewport: { width: 390, height: 800 },
  });
  const payloads = () => requests.filter((request) => request.url().endsWith('puts')).length;
  await page.getByText('think', { exact: true }).waitFor();
  await page.locator('.panel .facts').waitFor({ state: 'attached' });
  await page.evaluate('new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)))');
  expect(payloads()).toBe(0);
  await page.getByText('think', { exact: true }).click();
  await page.getByText('Find the needle').waitFor();
  expect(payloads()).toBe(2);
});

test('two runs are compared line by line', async () => {
  const { page } = await openPage(small, { path: `/?trace=${idOf(1)}&run=${idOf(3)}` });
  await page.getByText('Find the needle').waitFor();
  await page.keyboard.press('c');
  await page.getByText('Compare think with').waitFor();
  await page.keyboard.press('k');
  await page.getByRole('heading', { name: 'plan' }).waitFor();
  await page.keyboard.press('c');
  await page.locator('.diff-removed', { hasText: 'Find the needle' }).waitFor();
  expect(new URL(page.url()).searchParams.get('base')).toBe(idOf(3));
  await page.getByRole('link', { name: 'plan' }).click();
  await page.getByRole('treegrid').waitFor();
  await page.keyboard.press('Escape');
  await page.getByRole('grid', { name: 'Runs' }).waitFor();
});

test('statistics obey the filter, and lead to the runs of a group', async () => {
  const { page } = await openPage(small, { path: '/?view=statistics&q=type%3Atool' });
  await page.getByRole('img', { name: /^Runs\. errors: at most 1/ }).waitFor();
  await page.getByRole('link', { name: 'act' }).click();
  await page.getByRole('grid', { name: 'Runs' }).waitFor();
  expect(new URL(page.url()).searchParams.get('q')).toBe('type:tool name:act');
});
