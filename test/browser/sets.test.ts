import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Page, ViewportSize } from 'playwright-core';
import { expect, test } from 'vitest';
import { setRoutes } from '#src/cli/sets/set-routes.ts';
import { testFolder } from '../support/test-folder.ts';
import { expectAccessible } from './axe.ts';
import { openPage } from './page.ts';
import { idOf, run } from './runs.ts';

const traces = [
  run(1, { ms: 9, name: 'price', inputs: { question: 'Lamp?' }, outputs: { answer: '5 €' } }),
  run(2, { ms: 9, name: 'refund', inputs: { question: 'Money?' }, outputs: { answer: 'Sorry' } }),
  run(3, { parent: 2, ms: 5, name: 'lookup', run_type: 'tool', inputs: { id: 7 }, outputs: { found: true } }),
  run(4, { ms: 9, name: 'order', inputs: { question: 'Late?' }, outputs: { answer: 'No' } }),
];
const PRICE = `{"inputs":{"question":"Lamp?"},"outputs":{"answer":"5 €"},"source_run_id":"${idOf(1)}"}`;
const REFUND = `{"inputs":{"question":"Money?"},"outputs":{"answer":"Sorry"},"source_run_id":"${idOf(2)}"}`;
const LOOKUP = `{"inputs":{"id":7},"outputs":{"found":true},"source_run_id":"${idOf(3)}"}`;
const ORDER = `{"inputs":{"question":"Late?"},"outputs":{"answer":"No"},"source_run_id":"${idOf(4)}"}`;

/** Opens a page with the sets in a folder, as `runspan dev` serves it. `good` is the text of the set with this name. */
async function openSets(path: string, good?: string, viewport: ViewportSize = { width: 1_440, height: 900 }) {
  const folder = testFolder(good === undefined ? {} : { 'runspan-sets/good.jsonl': good });
  const opened = await openPage(traces, { path, routes: setRoutes(folder), viewport });
  const textOf = (set: string): string => readFileSync(join(folder, `runspan-sets/${set}.jsonl`), 'utf8');
  return { ...opened, textOf };
}

const button = (page: Page, name: string) => page.getByRole('button', { name, exact: true });
const noteIn = (page: Page) => page.getByRole('textbox', { name: 'Note' });

async function addToNewSet(page: Page, name: string): Promise<void> {
  await page.getByRole('textbox', { name: 'Name of a new set' }).fill(name);
  await page.keyboard.press('Enter');
}

test('a trace is added to a new set, and a run to the same set, and the menu shows the command that tests it', async () => {
  const { page, see, textOf } = await openSets(`/?trace=${idOf(2)}`);
  await button(page, 'Add to set').click();
  await addToNewSet(page, '../up');
  await page.locator('.menu input:invalid').waitFor();
  await addToNewSet(page, 'wrong.prices');
  await see('1 added to runspan-sets/wrong.prices.jsonl');
  await see('npx runspan test --set wrong.prices');
  expect(textOf('wrong.prices')).toBe(`${REFUND}\n`);
  await page.getByRole('row', { name: 'lookup' }).click();
  await page.getByRole('article', { name: 'Run lookup' }).getByRole('button', { name: 'Add run to set' }).click();
  await button(page, 'wrong.prices: 1 example').click();
  await button(page, 'wrong.prices: 2 examples').waitFor();
  expect(textOf('wrong.prices')).toBe(`${REFUND}\n${LOOKUP}\n`);
});

test('rows are selected with the key and the checkbox, and a line that a person has edited is kept', async () => {
  const edited = REFUND.replace('Sorry', 'Here it is');
  const { page, see, textOf } = await openSets('/', edited);
  await button(page, 'Select').waitFor();
  await page.keyboard.press('j');
  await page.keyboard.press('x');
  await page.getByRole('checkbox', { name: 'Select refund' }).check();
  await see('2 selected');
  expect(page.url()).not.toContain('trace=');
  await button(page, 'Add to set').click();
  await button(page, 'good: 1 example').click();
  await see('1 added, 1 was already in runspan-sets/good.jsonl');
  expect(textOf('good')).toBe(`${edited}\n${ORDER}\n`);
});

test('all loaded runs are selected with the keyboard, and Escape ends the selection', async () => {
  const { page, see, textOf } = await openSets('/?view=runs');
  await button(page, 'Select').press('Enter');
  await button(page, 'Select all loaded').press('Enter');
  await see('4 selected');
  // The focus moves to the checkbox, and the keys of the list still work.
  await page.getByRole('checkbox', { name: 'Select order' }).click();
  await page.keyboard.press('j');
  await page.keyboard.press('j');
  await page.keyboard.press('x');
  await see('2 selected');
  await button(page, 'Add to set').press('Enter');
  await addToNewSet(page, 'all');
  await see('2 added to runspan-sets/all.jsonl');
  expect(textOf('all').trim().split('\n').toSorted()).toEqual([PRICE, REFUND]);
  await page.keyboard.press('Escape');
  await page.keyboard.press('Escape');
  await expect.poll(() => page.getByRole('checkbox').count()).toBe(0);
});

test('a set whose file is broken is named with its line, and stays as it is', async () => {
  const { page, see, textOf } = await openSets(`/?trace=${idOf(1)}`, 'no json');
  await button(page, 'Add to set').click();
  await button(page, 'good: 1 example').click();
  await see('runspan-sets/good.jsonl:1 is no JSON object');
  expect(textOf('good')).toBe('no json');
});

test('a receiver without sets is asked once, and its page shows nothing of them', async () => {
  const { page, rows, requests } = await openPage(traces);
  await rows.nth(2).waitFor();
  await page.keyboard.press('j');
  await page.keyboard.press('x');
  expect(await page.getByText(/^Select|selected$/).count()).toBe(0);
  await page.keyboard.press('Enter');
  await noteIn(page).waitFor();
  expect(await page.getByRole('button', { name: /set$/ }).count()).toBe(0);
  expect(requests.filter((request) => request.url().endsWith('/query/sets'))).toHaveLength(1);
});

test('a note is shown with its time before other feedback, and the filter finds its trace', async () => {
  const { page, go, rows } = await openPage(traces, { path: `/?trace=${idOf(1)}` });
  await button(page, 'Good').click();
  await noteIn(page).fill('wrong price');
  // Both are pressed before the receiver has responded.
  await page.evaluate("for (const _ of 'ab') document.querySelector('[name=comment]').form.requestSubmit()");
  await expect
    .poll(() => page.locator('.feedback > li').allTextContents())
    .toEqual([expect.stringMatching(/^note \d{4}-[\d: .-]+wrong price$/), expect.stringMatching(/^rating1 /)]);
  expect(await noteIn(page).inputValue()).toBe('');
  await go('/?q=note%3A"wrong+price"');
  await expect.poll(() => rows.locator('.column-name').allTextContents()).toEqual(['price']);
});

test.each([1_440, 390])('selected rows, sets and notes have no violation of WCAG at %i px', async (width) => {
  const { page, go, see } = await openSets('/', PRICE, { width, height: 900 });
  await button(page, 'Select').click();
  await button(page, 'Select all loaded').click();
  await button(page, 'Add to set').click();
  await button(page, 'good: 1 example').click();
  await see('2 added, 1 was already in runspan-sets/good.jsonl');
  await expectAccessible(page, 'list');
  await go(`/?trace=${idOf(1)}&run=${idOf(1)}`);
  await noteIn(page).fill('wrong price');
  await button(page, 'Add note').click();
  await see('wrong price');
  await button(page, 'Add run to set').click();
  await button(page, 'good: 3 examples').waitFor();
  await expectAccessible(page, 'run');
});
