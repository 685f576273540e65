import { text } from 'node:stream/consumers';
import type { Page } from 'playwright-core';
import { expect, test } from 'vitest';
import { openPage } from './page.ts';
import { run } from './runs.ts';

const HOUR_MS = 3_600_000;
const FIRST_MS = Date.parse('2026-11-20T07:00:00.000Z');
const traces = [
  run(1, { at: Date.now() - 2 * HOUR_MS - FIRST_MS, ms: 5, name: 'old', extra: { metadata: { user_id: 'ada' } } }),
  run(2, { at: Date.now() - 60_000 - FIRST_MS, ms: 5, name: 'new', extra: { metadata: { thread_id: 't-7' } } }),
];

const menu = (page: Page, name: string | RegExp) => page.getByRole('button', { name });
const headers = (page: Page) => page.getByRole('columnheader').allTextContents();
const filterIn = (page: Page) => new URL(page.url()).searchParams.get('q');

test('the time menu sets the latest hour, a range between two times, and all time', async () => {
  const { page, rows } = await openPage(traces);
  await expect.poll(() => rows.count()).toBe(2);
  await menu(page, 'Time: All time').click();
  await menu(page, 'Last hour').click();
  await expect.poll(() => rows.count()).toBe(1);
  expect(filterIn(page)).toBe('since:1h');
  await menu(page, 'Time: Last hour').click();
  await page.getByLabel('From').fill('2026-01-31T09:00:30');
  await page.getByLabel('To').fill('2026-01-31T10:00');
  await menu(page, 'Apply').click();
  const iso = (local: string) => page.evaluate(`new Date('${local}').toISOString().replace('.000', '')`);
  const [from, to] = [await iso('2026-01-31T09:00:30'), await iso('2026-01-31T10:00')];
  await expect.poll(() => filterIn(page)).toBe(`since:${from} before:${to}`);
  await menu(page, 'Time: Custom time').click();
  expect(await page.getByLabel('From').inputValue()).toBe('2026-01-31T09:00:30');
  await menu(page, 'All time').last().click();
  await expect.poll(() => rows.count()).toBe(2);
  expect(filterIn(page)).toBe(null);
});

test('a menu is used with the keyboard, and closes after Escape and after a click elsewhere', async () => {
  const { page, rows } = await openPage(traces);
  await rows.nth(1).waitFor();
  await menu(page, /^Time/).focus();
  await page.keyboard.press('Enter');
  await menu(page, 'Last 15 minutes').waitFor();
  await page.keyboard.press('Tab');
  await page.keyboard.press('Tab');
  await page.keyboard.press('Escape');
  await menu(page, 'Last hour').waitFor({ state: 'detached' });
  const focused = () => page.evaluate('document.activeElement.getAttribute("aria-label")');
  expect(await focused()).toBe('Time: All time');
  await page.keyboard.press('Enter');
  await menu(page, 'Last 15 minutes').waitFor();
  await page.keyboard.press('Tab');
  await page.keyboard.press('Tab');
  await page.keyboard.press('Enter');
  await expect.poll(() => filterIn(page)).toBe('since:1h');
  await expect.poll(focused).toBe('Time: Last hour');
  await menu(page, 'Columns').click();
  await page.getByRole('checkbox').first().waitFor();
  await page.locator('.brand').click();
  await expect.poll(() => page.getByRole('checkbox').count()).toBe(0);
});

test('selected columns are shown and kept, for each list', async () => {
  const { page, rows, go } = await openPage(traces);
  await rows.nth(1).waitFor();
  const before = await headers(page);
  await menu(page, 'Columns').click();
  await page.getByRole('checkbox', { name: 'Thread' }).check();
  await page.getByRole('checkbox', { name: 'Cost' }).uncheck();
  expect(await page.getByRole('checkbox', { name: 'Name' }).isDisabled()).toBe(true);
  await page.reload();
  await rows.nth(1).waitFor();
  const after = [
    ...['Status', 'Name', 'Project', 'Input Output', 'User', 'Thread'],
    ...['Feedback', 'Tags', 'Latency', 'Tokens', 'Started'],
  ];
  expect(await headers(page)).toEqual(after);
  expect(await rows.nth(0).getByRole('gridcell').nth(5).textContent()).toBe('t-7');
  expect(await rows.nth(1).getByRole('gridcell').nth(4).textContent()).toBe('ada');
  await rows.nth(1).getByRole('link', { name: 'ada' }).click();
  await expect.poll(() => rows.count()).toBe(1);
  expect(filterIn(page)).toBe('user:ada');
  await go('/?view=runs');
  await rows.nth(1).waitFor();
  // The columns without values are omitted again, because only the list of traces has selected columns.
  expect(await headers(page)).toEqual(['Status', 'Name', 'Input Output', 'Type', 'Model', ...before.slice(3)]);
  await go('/');
  await menu(page, 'Columns').click();
  await menu(page, 'Default columns').click();
  await expect.poll(() => headers(page)).toEqual(before);
});

test('a saved view opens its list, filter and order, and can be deleted', async () => {
  const { page, rows, go } = await openPage(traces, { path: '/?view=runs&q=name%3Aold&sort=latency' });
  await rows.first().waitFor();
  const path = () => page.url().slice(new URL(page.url()).origin.length);
  const saved = path();
  await menu(page, 'Views').click();
  await page.getByLabel('Name of the view').fill('Old runs');
  await page.keyboard.press('Enter');
  await page.getByRole('link', { name: 'Old runs' }).waitFor();
  await go('/');
  await menu(page, 'Views').click();
  await page.getByRole('link', { name: 'Old runs' }).click();
  await expect.poll(path).toBe(saved);
  await menu(page, 'Views').click();
  await menu(page, 'Delete the view Old runs').click();
  await expect.poll(() => page.getByRole('link', { name: 'Old runs' }).count()).toBe(0);
  await page.reload();
  await menu(page, 'Views').click();
  await page.getByText('A saved view contains').waitFor();
});

test('a view that is saved in one tab is kept when another tab saves a view', async () => {
  const { page, receiver } = await openPage(traces);
  const other = await page.context().newPage();
  await other.goto(receiver.url);
  for (const tab of [page, other]) {
    await menu(tab, 'Views').click();
    await tab.getByLabel('Name of the view').fill(tab === page ? 'first' : 'second');
    await menu(tab, 'Save').click();
    await tab.getByRole('link', { name: tab === page ? 'first' : 'second' }).waitFor();
  }
  await page.getByRole('link', { name: 'second' }).waitFor();
  expect(await other.locator('.menu a').allTextContents()).toEqual(['first', 'second']);
});

test.each([
  ['/?q=name%3Anew', 'CSV', 'traces.csv', /^start_time,[^\n]*,feedback\r\n[^\n]*,new,chain,[^\n]*\r\n$/],
  ['/?view=runs&q=name%3Anew', 'CSV', 'runs.csv', /^start_time,[^\n]*,trace_id\r\n[^\n]*,new,chain,[^\n]*\r\n$/],
  ['/?q=since%3A1h', 'JSON Lines', 'traces.jsonl', /^\{[^\n]*"name":"new"[^\n]*\}\n$/],
])('%s is downloaded as %s', async (path, format, file, content) => {
  const { page, rows } = await openPage(traces, { path });
  await expect.poll(() => rows.count()).toBe(1);
  await menu(page, 'Download').click();
  const downloading = page.waitForEvent('download');
  await page.getByRole('link', { name: format }).click();
  const download = await downloading;
  expect(download.suggestedFilename()).toBe(file);
  expect(await text(await download.createReadStream())).toMatch(content);
});
