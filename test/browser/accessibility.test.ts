import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { expect, test } from 'vitest';
import { root } from '../support/folders.ts';
import { openPage } from './page.ts';
import { idOf, run } from './runs.ts';

const axe = readFileSync(join(root, 'node_modules/axe-core/axe.min.js'), 'utf8');

const operations = [
  run(1, {
    name: 'agent',
    ms: 900,
    tags: ['prod', 'eu'],
    inputs: { question: 'Why?' },
    outputs: { answer: 'Because' },
    extra: { metadata: { user: '42' } },
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
      choices: [
        {
          message: {
            role: 'assistant',
            content: 'Because **so**:\n\n```\ncode\n```',
            tool_calls: [{ id: 'c', function: { name: 'f', arguments: '{"a":1}' } }],
          },
        },
      ],
      usage_metadata: { input_tokens: 3, output_tokens: 4, total_tokens: 7, total_cost: 0.001 },
    },
    events: [{ name: 'new_token', time: '2026-11-20T07:00:00.100000Z' }],
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
    error: 'Interrupted: SIGTERM',
    ms: 3,
    extra: { metadata: { end_reason: 'interrupted' } },
  }),
];

/** What a checker of WCAG finds, down to what it calls serious. */
async function findings(page: Page): Promise<string[]> {
  // Run by the debugger, which the policy of the page does not bind.
  await page.evaluate(axe);
  const result = (await page.evaluate('axe.run()')) as {
    violations: { id: string; impact: string; nodes: { html: string; failureSummary: string }[] }[];
  };
  return result.violations
    .filter(({ impact }) => impact === 'serious' || impact === 'critical')
    .flatMap(({ id, nodes }) =>
      nodes.slice(0, 3).map(({ html, failureSummary }) => `${id}: ${html}\n${failureSummary}`),
    );
}

const views: readonly (readonly [string, string, string])[] = [
  ['the list', '/', '.list-rows [role=rowgroup] [role=row]'],
  ['the list with a filter', '/?q=status%3Apending+latency>x', '.term.bad'],
  ['nothing', '/?project=nowhere', '.empty'],
  ['a trace with a call of a model', `/?trace=${idOf(1)}&run=${idOf(2)}`, '.markdown strong'],
  ['a trace with an error', `/?trace=${idOf(1)}&run=${idOf(3)}`, '.stack'],
  ['statistics', '/?view=statistics', '.groups td'],
  ['a comparison', `/?view=compare&base=${idOf(2)}&run=${idOf(3)}`, '.diff-line'],
];

test.each(['light', 'dark'] as const)('a checker finds nothing serious in any view, in %s', async (colorScheme) => {
  const { page, go } = await openPage(operations, { colorScheme });
  for (const [name, path, ready] of views) {
    await go(path);
    await page.locator(ready).first().waitFor();
    expect({ name, found: await findings(page) }).toEqual({ name, found: [] });
  }
  await page.keyboard.press('?');
  await page.getByRole('dialog').waitFor();
  expect(await findings(page)).toEqual([]);
});

test('a narrow screen shows the tree, then the run, and the way back', async () => {
  const { page } = await openPage(operations, { path: `/?trace=${idOf(1)}`, viewport: { width: 390, height: 800 } });
  await page.getByText('model', { exact: true }).click();
  await page.getByText('Be kind').waitFor();
  expect(await page.getByRole('treegrid').isVisible()).toBe(false);
  await page.getByRole('button', { name: 'Runs' }).click();
  await page.getByRole('treegrid').waitFor();
  expect(await page.evaluate('document.documentElement.scrollWidth <= innerWidth')).toBe(true);
});

test.each(['light', 'dark'] as const)(
  'nor where nothing has come yet, or a key is asked for, in %s',
  async (colorScheme) => {
    const { page } = await openPage([], { colorScheme });
    await page.getByText('Waiting for the first run').waitFor();
    expect(await findings(page)).toEqual([]);
    const locked = await openPage([], { colorScheme, receiver: { apiKey: 'a-key-of-some-length' } });
    await locked.page.getByLabel('Key').waitFor();
    expect(await findings(locked.page)).toEqual([]);
  },
);

test('no view is wider than a narrow screen', async () => {
  const { page, go } = await openPage(operations, { viewport: { width: 390, height: 800 } });
  for (const [name, path] of views) {
    await go(path);
    await page.locator('main > *').first().waitFor();
    await page.getByText('Loading').first().waitFor({ state: 'detached' });
    expect({ name, fits: await page.evaluate('document.documentElement.scrollWidth <= innerWidth') }).toEqual({
      name,
      fits: true,
    });
  }
});

test('the header of a trace is one line on a screen of 1440, however long its name and many its figures', async () => {
  const usage = {
    usage_metadata: { input_tokens: 123_456, output_tokens: 123_456, total_tokens: 246_912, total_cost: 1.5 },
  };
  const long = [
    run(1, { name: 'answer the question of a customer at length', error: 'Error: no', ms: 754_321 }),
    run(2, { parent: 1, run_type: 'llm', outputs: usage, error: 'Error: no', ms: 5 }),
    run(3, { parent: 1 }),
  ];
  const { page } = await openPage(long, { path: `/?trace=${idOf(1)}`, viewport: { width: 1440, height: 900 } });
  await page.getByRole('link', { name: 'Perfetto' }).waitFor();
  const header = await page.locator('.trace-bar').boundingBox();
  expect(header?.height).toBeLessThan(45);
  const last = await page.getByRole('link', { name: 'Perfetto' }).boundingBox();
  expect((last?.x ?? 0) + (last?.width ?? 0)).toBeLessThanOrEqual(1440);
});
