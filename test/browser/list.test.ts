import type { Page } from 'playwright-core';
import { DEFAULT_SCOPE } from 'runspan/receiver';
import { expect, test } from 'vitest';
import { openPage, rowCount } from './page.ts';
import { idOf, run } from './runs.ts';

const traces = [
  run(1, {
    ms: 100,
    name: 'checkout',
    tags: ['prod'],
    inputs: { question: 'Where is my parcel?' },
    outputs: { answer: 'Near' },
  }),
  run(2, { ms: 3_000, name: 'refund', error: 'PaymentError: no card', extra: { metadata: { user: '42' } } }),
  run(3, { parent: 2, ms: 2_000, name: 'model', run_type: 'llm', extra: { metadata: { ls_model_name: 'gpt-x' } } }),
  run(4, { name: 'checkout', inputs: { question: 'A lamp' } }),
];
const many = (count: number) => Array.from({ length: count }, (_, index) => run(index + 1, { ms: 5 }));

test('the list shows the latest trace first, with status, previews and latency', async () => {
  const { rows } = await openPage(traces);
  await expect
    .poll(() => rows.allTextContents())
    .toEqual([
      expect.stringMatching(/pending[\s\S]*checkout[\s\S]*A lamp/),
      expect.stringMatching(/error[\s\S]*refund[\s\S]*PaymentError: no card[\s\S]*3 s[\s\S]*2/),
      expect.stringMatching(/success[\s\S]*checkout[\s\S]*Where is my parcel\?[\s\S]*Near[\s\S]*prod[\s\S]*100 ms/),
    ]);
});

test('a new trace appears at once, without polling', async () => {
  const { page, store, requests, rows, see } = await openPage(traces);
  await see('live');
  await rows.nth(2).waitFor();
  await page.waitForLoadState('load');
  expect(requests.filter((request) => request.url().includes('/query/traces'))).toHaveLength(1);
  const startMs = performance.now();
  await store.apply(DEFAULT_SCOPE, [run(9, { at: 9_000, name: 'newcomer' })]);
  await see('newcomer');
  // A page that had lost its stream would ask after 3 s.
  expect(performance.now() - startMs).toBeLessThan(3_000);
  await store.apply(DEFAULT_SCOPE, [run(9, { at: 9_000, name: 'newcomer', ms: 20 })]);
  await rows.first().getByText('success').waitFor({ state: 'attached' });
});

test('visible rows do not move when traces arrive above them', async () => {
  const { page, store, see } = await openPage(many(300));
  await see('run 300');
  await page.locator('.list-rows').evaluate((element) => element.scrollTo({ top: 1_700 }));
  await see('run 245');
  const position = async () => (await page.getByText('run 245', { exact: true }).boundingBox())?.y;
  const before = await position();
  await store.apply(DEFAULT_SCOPE, [run(400), run(401)]);
  await page.getByText('2 new traces').waitFor();
  expect(await position()).toBe(before);
  await page.getByText('2 new traces').click();
  await see('run 401');
});

test('a long list loads as it is scrolled, and is restored after a visit to a trace', async () => {
  const { page, see } = await openPage(many(1_000));
  await see('run 1000');
  const scrollTo = (top: number, text: string) =>
    expect
      .poll(async () => {
        await page.locator('.list-rows').evaluate((element, to) => element.scrollTo({ top: to }), top);
        expect(await rowCount(page)).toBeLessThan(100);
        return page.getByText(text, { exact: true }).isVisible();
      })
      .toBe(true);
  await scrollTo(1e6, 'run 1');
  await scrollTo(9_000, 'run 745');
  const row = page.getByText('run 745', { exact: true });
  const before = await row.boundingBox();
  await row.click();
  await page.getByRole('treegrid').waitFor();
  await page.goBack();
  await row.waitFor();
  expect((await row.boundingBox())?.y).toBe(before?.y);
});

test('a filter becomes chips, is part of the URL, and is undone with the back button', async () => {
  const { page, rows, see } = await openPage(traces);
  const box = page.getByRole('combobox', { name: /Filter/ });
  await see('refund');
  await page.keyboard.press('/');
  await page.keyboard.type('status:error ');
  await page.keyboard.press('Enter');
  await expect.poll(() => rows.count()).toBe(1);
  expect(new URL(page.url()).searchParams.get('q')).toBe('status:error');
  await box.fill('nothing-like-this');
  await box.press('Enter');
  await see('No matches');
  await see('No traces match this filter. New matches appear automatically.');
  await page.goBack();
  await see('refund');
  await page.goBack();
  await expect.poll(() => rows.count()).toBe(3);
});

test('suggestions are selected with the keyboard', async () => {
  const { page, see } = await openPage(traces);
  await see('refund');
  await page.keyboard.press('/');
  const accept = async (name: RegExp): Promise<void> => {
    await page.getByRole('option', { name }).waitFor();
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('Enter');
  };
  await page.keyboard.type('mod');
  await accept(/^model:/);
  await accept(/^model:gpt-x/);
  await expect.poll(() => new URL(page.url()).searchParams.get('q')).toBe('model:gpt-x');
  // The suggestions close so that they do not cover the list.
  await expect.poll(() => page.getByRole('listbox', { name: 'Suggestions' }).isVisible()).toBe(false);
  await page.keyboard.type('-meta.us');
  await accept(/^-meta\.user=/);
  await accept(/^-meta\.user=42/);
  await expect.poll(() => new URL(page.url()).searchParams.get('q')).toBe('model:gpt-x -meta.user=42');
  await page.keyboard.type('sta');
  await page.getByRole('option', { name: /^status:/ }).waitFor();
});

test.each([
  ['/?view=runs&q=type%3Allm', 'model'],
  ['/?q=parcel', 'checkout'],
  ['/?q=meta.user%3D42+latency>2s', 'refund'],
  ['/?q=any(type:llm)+-status:pending+OR+meta.user%3D42', 'refund'],
  ['/?sort=latency', 'refundcheckoutcheckout'],
])('%s opens the list of %s', async (path, names) => {
  const { page } = await openPage(traces, { path });
  await expect
    .poll(async () => (await page.locator('.list-rows [role=rowgroup] .column-name').allTextContents()).join(''))
    .toBe(names);
});

test('an invalid condition is ignored with an explanation', async () => {
  const { page, rows } = await openPage(traces, { path: '/?q=latency>soon' });
  await expect.poll(() => rows.count()).toBe(3);
  expect(await page.locator('.term.bad').getAttribute('title')).toBe('latency> expects a duration: 500ms, 2s, 1m');
});

test('a query that the receiver refuses is explained', async () => {
  const { page, go, see } = await openPage(traces);
  const detail = 'The query reads too much: choose a shorter time range';
  await page.route('**/query/traces*', (route) => route.fulfill({ status: 429, json: { detail } }));
  await go('/');
  await see(detail);
});

test('keys select and open rows, and Escape goes back', async () => {
  const { page, see } = await openPage(traces);
  await see('refund');
  await page.keyboard.press('j');
  await page.keyboard.press('j');
  expect(await page.getByRole('grid').getAttribute('aria-activedescendant')).toBe(`line-${idOf(2)}`);
  await page.keyboard.press('Enter');
  const focused = () => page.evaluate('document.activeElement.getAttribute("role")');
  await expect.poll(focused).toBe('treegrid');
  expect(new URL(page.url()).searchParams.get('trace')).toBe(idOf(2));
  await page.keyboard.press('Escape');
  await expect.poll(focused).toBe('grid');
  await page.keyboard.press('g');
  await page.keyboard.press('r');
  await page.getByRole('grid', { name: 'Runs' }).waitFor();
  await page.keyboard.press('?');
  await page.getByRole('dialog', { name: 'Help' }).waitFor();
});

test('an empty receiver shows how to send the first run', async () => {
  const { receiver, store, see } = await openPage([]);
  await see(`RUNSPAN_ENDPOINT=${receiver.url} RUNSPAN_TRACING=true node app.js`);
  await see('npx runspan dev -- node app.js');
  await store.apply(DEFAULT_SCOPE, many(40));
  // A full screen of rows.
  await see('run 25');
});

const failing = [
  run(1, { ms: 9, name: 'chat', inputs: { question: 'My money?' }, outputs: { answer: 'Sorry' } }),
  run(2, { parent: 1, at: 5, ms: 1, name: 'refund', run_type: 'tool', error: 'RefundError: too old' }),
  run(3, { ms: 9, name: 'chat', inputs: { question: 'Which plan?' }, error: 'RateLimitError: 429' }),
  run(4, { ms: 9, name: 'chat', inputs: { question: 'Green?' }, outputs: { answer: 'Yes' } }),
];

test('the list shows the outcome of each trace, the text of a failure in place of the output, and their totals', async () => {
  const { page, store, rows } = await openPage(failing);
  const texts = rows.locator('.preview-out');
  await expect
    .poll(() => texts.allTextContents())
    .toEqual(['Yes', 'RateLimitError: 429', '1 failed below: RefundError: too old']);
  expect(await rows.locator('.column-status').allTextContents()).toEqual(['success', 'error', 'failed below']);
  const totals = page.locator('.list-totals');
  expect(await totals.textContent()).toBe('3 traces1 success1 failed below1 error');
  await totals.getByRole('link', { name: 'failed below' }).click();
  await expect.poll(() => rows.count()).toBe(1);
  expect(new URL(page.url()).searchParams.get('q')).toBe('status:failed_below');
  await page.goBack();
  const more = Array.from({ length: 100 }, (_, index) => run(index + 10, { ms: 5, session_name: 'bank' }));
  await store.apply(DEFAULT_SCOPE, more);
  await expect.poll(() => totals.textContent()).toMatch(/^\d+ traces loaded/);
  await expect.poll(() => headers(page)).not.toContain('Project');
  await page.locator('.list-rows').evaluate((element) => element.scrollTo({ top: 1e6 }));
  await expect.poll(() => headers(page)).toContain('Project');
});

test('a filter for errors that matches nothing offers the traces with a failed run', async () => {
  const { page, rows } = await openPage(failing, { path: '/?q=status%3Aerror+refund' });
  await page.getByText('1 trace has a failed run: show them').getByRole('link').click();
  await expect.poll(() => rows.count()).toBe(1);
  expect(new URL(page.url()).searchParams.get('q')).toBe('status:failed_below refund');
});

const headers = (page: Page): Promise<string[]> => page.getByRole('columnheader').allTextContents();
const inputOf = (page: Page) => page.locator('.list-rows [role=rowgroup] .preview-in');

test('a narrow screen shows the input of each trace on one line, and the error of a trace that failed', async () => {
  const long = 'Can I return the lamp that I bought last week, even if I have lost the receipt and the box?';
  const { page, rows, see } = await openPage([...traces, run(6, { ms: 5, inputs: { question: long } })], {
    viewport: { width: 390, height: 800 },
  });
  await see('Where is my parcel?');
  await see('PaymentError: no card');
  const boxes = await Promise.all(
    [rows.first(), inputOf(page).first()].map(
      async (one) => (await one.boundingBox()) ?? { x: 0, y: 0, width: 0, height: 0 },
    ),
  );
  const [row, input] = boxes;
  expect(input?.width).toBeGreaterThan(260);
  expect(input?.height).toBeLessThan(22);
  expect((input?.y ?? 0) + (input?.height ?? 0)).toBeLessThanOrEqual((row?.y ?? 0) + (row?.height ?? 0));
  const heights = await Promise.all([0, 1, 2, 3].map(async (index) => (await rows.nth(index).boundingBox())?.y));
  expect(heights.map((y) => (y ?? 0) - (heights[0] ?? 0))).toEqual([0, 78, 156, 234]);
  await page.setViewportSize({ width: 1280, height: 800 });
  await expect.poll(async () => (await rows.first().boundingBox())?.height).toBe(36);
});

test('a column without values gives its room to the input and the output, until a row has a value', async () => {
  const without = [1, 2].map((index) => run(index, { ms: 5, inputs: { question: 'Where is my parcel?' } }));
  const { page, store, see } = await openPage(without);
  await see('Where is my parcel?');
  expect(await headers(page)).toEqual(['Status', 'Name', 'Input Output', 'Latency', 'Tokens', 'Started']);
  const widthOf = async () => (await page.locator('.list-head .preview').boundingBox())?.width ?? 0;
  const wide = await widthOf();
  const usage_metadata = { total_tokens: 3, total_cost: 0.001 };
  await store.apply(DEFAULT_SCOPE, [run(3, { ms: 5, tags: ['prod'], run_type: 'llm', outputs: { usage_metadata } })]);
  await expect
    .poll(() => headers(page))
    .toEqual(['Status', 'Name', 'Input Output', 'Tags', 'Latency', 'Tokens', 'Cost', 'Started']);
  expect(wide - (await widthOf())).toBeGreaterThan(150);
  await page.goto(`${page.url()}?q=run%202&sort=cost`);
  await expect.poll(() => headers(page)).toContain('Cost');
});
