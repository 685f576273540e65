import { expect, test } from 'vitest';
import { expectAccessible } from './axe.ts';
import { openPage } from './page.ts';
import { idOf, run } from './runs.ts';

const ANSWER = 'Because **so**:\n\n```\ncode\n```\n\n```js\nconst a = "b"; // c\n```';
const usage_metadata = { input_tokens: 3, output_tokens: 4, total_tokens: 7, total_cost: 0.001 };
const operations = [
  run(1, {
    name: 'agent',
    ms: 900,
    tags: ['prod', 'eu'],
    inputs: { question: 'Why?' },
    outputs: { answer: 'Because' },
    extra: { metadata: { user: '42', thread_id: 'a conversation with a long id', user_id: 'ada' } },
  }),
  run(2, {
    parent: 1,
    name: 'model',
    run_type: 'llm',
    ms: 500,
    inputs: {
      messages: [
        { role: 'system', content: 'Be kind' },
        { role: 'user', content: 'Why? `code`' },
      ],
    },
    outputs: {
      role: 'assistant',
      content: ANSWER,
      tool_calls: [{ id: 'c', function: { name: 'f', arguments: '{"a":1}' } }],
      usage_metadata,
    },
    events: [{ name: 'new_token', time: '2026-11-20T07:00:00.100000Z' }],
    extra: {
      metadata: {
        ls_invocation_params: { model: 'm', seed: 1, tools: [{ name: 'f', description: 'Finds', type: 'x' }] },
      },
    },
  }),
  run(3, {
    parent: 1,
    name: 'tool',
    run_type: 'tool',
    ms: 200,
    error: 'Error: no\n    at a (b.js:1:1)',
    inputs: { a: [1, { b: null }] },
  }),
  run(4, { parent: 1, name: 'open' }),
  run(5, {
    parent: 1,
    name: 'lost',
    ms: 3,
    error: 'Interrupted: SIGTERM',
    extra: { runspan_end_reason: 'interrupted' },
  }),
];

const NARROW = { width: 390, height: 800 };
const WIDE = { width: 1440, height: 900 };

test.each([
  ['/', '.list-rows [role=rowgroup] [role=row]'],
  ['/?view=runs', '.list-row a'],
  ['/?q=nothing', '.empty h1'],
  ['/?q=status%3Apending+latency>x', '.term.bad'],
  ['/?project=nowhere', '.empty'],
  [`/?trace=${idOf(1)}&run=${idOf(2)}`, '.code-keyword'],
  [`/?trace=${idOf(1)}&run=${idOf(3)}`, '.failure'],
  ['/?view=threads', '.threads td'],
  ['/?view=threads&thread=a+conversation+with+a+long+id', '.turn .message'],
  ['/?view=users', '.threads td'],
  ['/?view=statistics', '.groups td'],
  [`/?view=compare&base=${idOf(2)}&run=${idOf(3)}`, '.diff-line'],
])('%s has a heading and no violation of WCAG, and fits a wide and a narrow screen', async (path, ready) => {
  const { page } = await openPage(operations, { path, viewport: WIDE });
  await page.locator(ready).first().waitFor();
  if (path.includes('statistics')) await page.getByText('As a table').first().click();
  expect(await page.getByRole('heading', { level: 1 }).count()).toBe(1);
  for (const viewport of [WIDE, NARROW]) {
    await page.setViewportSize(viewport);
    await expectAccessible(page, { path, viewport });
    await page.getByRole('button', { name: 'Help' }).click({ trial: true });
  }
});

test('no menu or dialog has a violation of WCAG, and none is wider than a narrow screen', async () => {
  const { page, go } = await openPage(operations);
  for (const name of ['Time', 'Views', 'Columns', 'Download']) {
    await page.getByRole('button', { name: new RegExp(`^${name}`) }).click();
    await page.locator('.menu a, .menu input').first().waitFor();
    if (name === 'Columns')
      for (const column of ['User', 'Error']) await page.getByRole('checkbox', { name: column }).check();
    await page.setViewportSize(NARROW);
    await expectAccessible(page, name);
    await page.setViewportSize(WIDE);
  }
  await page.keyboard.press('Escape');
  await page.keyboard.press('?');
  await page.getByRole('dialog').waitFor();
  await expectAccessible(page, 'help');
  await page.keyboard.press('Escape');
  await go('/?project=nowhere');
  await page.getByRole('button', { name: 'Delete the project nowhere' }).click();
  await page.getByText('The project nowhere is not stored').waitFor();
  await expectAccessible(page, 'delete');
});

test('the page of a receiver without runs, and the login, have no violation of WCAG', async () => {
  const empty = await openPage([]);
  await empty.see('Waiting for the first trace');
  await expectAccessible(empty.page, 'empty');
  const locked = await openPage([], { receiver: { apiKey: 'a-key-of-some-length' } });
  await locked.page.getByLabel('Key').waitFor();
  await expectAccessible(locked.page, 'locked');
});

test('the header of a trace is one line on a screen of 1440 pixels, with a long name and many figures', async () => {
  const usage = { ...usage_metadata, total_tokens: 246_912, total_cost: 1.5 };
  const long = [
    run(1, { name: 'answer the question of a customer at length', error: 'Error: no', ms: 754_321 }),
    run(2, { parent: 1, run_type: 'llm', outputs: { usage_metadata: usage }, error: 'Error: no', ms: 5 }),
    run(3, { parent: 1 }),
  ];
  const { page } = await openPage(long, { path: `/?trace=${idOf(1)}`, viewport: WIDE });
  const last = await page.getByRole('button', { name: 'Delete this trace' }).boundingBox();
  expect((last?.x ?? 0) + (last?.width ?? 0)).toBeLessThanOrEqual(1440);
  expect((await page.locator('.trace-bar').boundingBox())?.height).toBeLessThan(45);
});
