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

test('traces are listed, the latest first, with status, previews and latency', async () => {
  const { page } = await openPage(traces);
  const rows = page.locator('.list-rows [role=rowgroup] [role=row]');
  await rows.nth(2).waitFor();
  expect(await rows.count()).toBe(3);
  expect(await rows.nth(0).textContent()).toMatch(/pending[\s\S]*checkout[\s\S]*A lamp/);
  expect(await rows.nth(1).textContent()).toMatch(/error[\s\S]*refund[\s\S]*PaymentError: no card[\s\S]*3 s[\s\S]*2/);
  expect(await rows.nth(2).textContent()).toMatch(
    /success[\s\S]*checkout[\s\S]*Where is my parcel\?[\s\S]*Near[\s\S]*100 ms[\s\S]*prod/,
  );
});

test('a trace that arrives appears within a second, and nothing is asked for before it does', async () => {
  const { page, store, requests } = await openPage(traces);
  await page.getByText('live', { exact: true }).waitFor();
  await page.locator('.list-rows [role=rowgroup] [role=row]').nth(2).waitFor();
  await page.waitForLoadState('load');
  const before = requests.filter((request) => request.url().includes('/query/traces')).length;
  expect(before).toBe(1);
  const startMs = performance.now();
  await store.apply([run(9, { at: 9_000, name: 'newcomer' })]);
  await page.getByText('newcomer').waitFor({ timeout: 1_000 });
  expect(performance.now() - startMs).toBeLessThan(1_000);
  await store.apply([run(9, { at: 9_000, name: 'newcomer', ms: 20 })]);
  await page
    .locator('.list-rows [role=rowgroup] [role=row]')
    .first()
    .getByText('success')
    .waitFor({ state: 'attached' });
});

test('what is being read stays where it is while traces arrive above it', async () => {
  const { page, store } = await openPage(Array.from({ length: 300 }, (_, index) => run(index + 1, { ms: 5 })));
  const rows = page.locator('.list-rows');
  await page.getByText('run 300').waitFor();
  await rows.evaluate((element) => element.scrollTo({ top: 1_700 }));
  const read = page.getByText('run 245', { exact: true });
  await read.waitFor();
  const before = await read.boundingBox();
  await store.apply([run(400), run(401)]);
  await page.getByText('2 new lines').waitFor();
  expect((await read.boundingBox())?.y).toBe(before?.y);
  await page.getByText('2 new lines').click();
  await page.getByText('run 401').waitFor();
});

test('a long list grows as it is scrolled, with a screen of it in the document', async () => {
  const { page } = await openPage(Array.from({ length: 1_000 }, (_, index) => run(index + 1, { ms: 5 })));
  await page.getByText('run 1000', { exact: true }).waitFor();
  const isAtEnd = async (): Promise<boolean> => {
    await page.locator('.list-rows').evaluate((element) => element.scrollTo({ top: 1e6 }));
    expect(await rowCount(page)).toBeLessThan(100);
    return page.getByText('run 1', { exact: true }).isVisible();
  };
  await expect.poll(isAtEnd, { timeout: 10_000 }).toBe(true);
});

test('conditions become chips, stand in the address, and are taken back with the back button', async () => {
  const { page } = await openPage(traces);
  const box = page.getByRole('combobox', { name: /Filter/ });
  await page.getByText('refund', { exact: true }).waitFor();
  await page.keyboard.press('/');
  await page.keyboard.type('status:error ');
  await page.keyboard.press('Enter');
  await expect.poll(() => page.locator('.list-rows [role=rowgroup] [role=row]').count()).toBe(1);
  expect(new URL(page.url()).searchParams.get('q')).toBe('status:error');
  await box.fill('nothing-like-this');
  await box.press('Enter');
  await page.getByText('Nothing matches').waitFor();
  await page.goBack();
  await page.getByText('refund').waitFor();
  await page.goBack();
  await expect.poll(() => page.locator('.list-rows [role=rowgroup] [role=row]').count()).toBe(3);
});

test('suggestions are taken with the keyboard', async () => {
  const { page } = await openPage(traces);
  await page.getByText('refund', { exact: true }).waitFor();
  await page.keyboard.press('/');
  await page.keyboard.type('mod');
  await page.getByRole('option', { name: /^model:/ }).waitFor();
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('Enter');
  await page.getByRole('option', { name: /^model:gpt-x/ }).waitFor();
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('Enter');
  await expect.poll(() => new URL(page.url()).searchParams.get('q')).toBe('model:gpt-x');
  // What was asked for is to be seen; more can be typed at once.
  await expect.poll(() => page.getByRole('listbox', { name: 'Suggestions' }).isVisible()).toBe(false);
  await page.keyboard.type('sta');
  await page.getByRole('option', { name: /^status:/ }).waitFor();
});

test('an address leads to the same list: view, words, metadata, order', async () => {
  const { page, go } = await openPage(traces, { path: '/?view=runs&q=type%3Allm' });
  await expect.poll(() => page.locator('.list-rows [role=rowgroup] [role=row]').count()).toBe(1);
  await page.getByText('model', { exact: true }).waitFor();
  await go('/?q=parcel');
  await page.getByText('Where is my parcel?').waitFor();
  expect(await page.locator('.list-rows [role=rowgroup] [role=row]').count()).toBe(1);
  await go('/?q=meta.user%3D42+latency>2s');
  await page.getByText('refund', { exact: true }).waitFor();
  await go('/?sort=latency');
  await expect.poll(() => page.locator('.line-name').first().textContent()).toBe('refund');
});

test('a condition that cannot be used says why, and is left out', async () => {
  const { page } = await openPage(traces, { path: '/?q=latency>soon' });
  await expect.poll(() => page.locator('.list-rows [role=rowgroup] [role=row]').count()).toBe(3);
  expect(await page.locator('.term.bad').getAttribute('title')).toBe('latency> wants a duration: 500ms, 2s, 1m');
});

test('lines are chosen and opened by keys, and Escape leads back', async () => {
  const { page } = await openPage(traces);
  await page.getByText('refund', { exact: true }).waitFor();
  await page.keyboard.press('j');
  await page.keyboard.press('j');
  expect(await page.getByRole('grid').getAttribute('aria-activedescendant')).toBe(`line-${idOf(2)}`);
  await page.keyboard.press('Enter');
  await page.getByRole('treegrid').waitFor();
  expect(new URL(page.url()).searchParams.get('trace')).toBe(idOf(2));
  const focused = () => page.evaluate('document.activeElement.getAttribute("role")');
  await expect.poll(focused).toBe('treegrid');
  await page.keyboard.press('Escape');
  await page.getByRole('grid', { name: 'Traces' }).waitFor();
  await expect.poll(focused).toBe('grid');
  await page.keyboard.press('g');
  await page.keyboard.press('r');
  await page.getByRole('grid', { name: 'Runs' }).waitFor();
  await page.keyboard.press('?');
  await page.getByRole('dialog', { name: 'Help' }).waitFor();
});

test('a receiver without runs says what to type next', async () => {
  const { page, receiver, store } = await openPage([]);
  await page.getByText(`RUNSPAN_ENDPOINT=${receiver.url}`).waitFor();
  await page.getByText('npx runspan dev -- node app.js').waitFor();
  await store.apply(Array.from({ length: 40 }, (_, index) => run(index + 1, { ms: 5 })));
  // A whole screen of them.
  await page.getByText('run 25', { exact: true }).waitFor();
});

test('whoever comes back from a trace finds the list where it was left', async () => {
  const { page } = await openPage(Array.from({ length: 500 }, (_, index) => run(index + 1, { ms: 5 })));
  const rows = page.locator('.list-rows');
  await page.getByText('run 500', { exact: true }).waitFor();
  await expect
    .poll(async () => {
      await rows.evaluate((element) => element.scrollTo({ top: 8_500 }));
      return page.getByText('run 245', { exact: true }).isVisible();
    })
    .toBe(true);
  const before = await page.getByText('run 245', { exact: true }).boundingBox();
  await page.getByText('run 245', { exact: true }).click();
  await page.getByRole('treegrid').waitFor();
  await page.goBack();
  await page.getByText('run 245', { exact: true }).waitFor();
  expect((await page.getByText('run 245', { exact: true }).boundingBox())?.y).toBe(before?.y);
});
