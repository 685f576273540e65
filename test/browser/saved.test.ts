import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { BrowserContextOptions, Page } from 'playwright-core';
import { expect, test } from 'vitest';
import { testFolder } from '../support/test-folder.ts';
import { expectAccessible, expectToFit } from './axe.ts';
import { openPage } from './page.ts';
import { idOf, run } from './runs.ts';
import { openFile } from './saved-page.ts';

const PNG = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAoAAAAKCAYAAACNMs+9AAAAFUlEQVR42mNk+M9Qz0AEYBxVSF+FAAhKDveksOjmAAAAAElFTkSuQmCC',
  'base64',
);
const ANSWER = '# Refund\n\nThe order **was refunded**.\n\n```js\nconst a = 1;\n```';
const trace = [
  run(1, {
    name: 'agent',
    ms: 900,
    tags: ['prod'],
    inputs: { question: 'Refund?', password: 'hunter2!' },
    outputs: { answer: ANSWER },
    extra: { metadata: { user_id: 'ada', thread_id: 't-1', ls_provider: 'openai', plan: 'pro' } },
  }),
  run(2, { parent: 1, name: '__start__', ms: 1 }),
  run(3, {
    parent: 1,
    name: 'model',
    run_type: 'llm',
    ms: 500,
    inputs: { messages: [{ role: 'user', content: 'Find the needle' }] },
    outputs: { role: 'assistant', content: ANSWER, usage_metadata: { total_tokens: 30, total_cost: 0.5 } },
    events: [{ name: 'new_token', time: '2026-11-20T07:00:00.100000Z' }],
  }),
  run(4, {
    parent: 1,
    name: 'refund',
    run_type: 'tool',
    ms: 20,
    error: 'PaymentError: card expired\n    at refund (shop.js:12:3)',
    attachments: [
      { name: 'receipt.png', mimeType: 'image/png', bytes: PNG },
      { name: 'page.html', mimeType: 'text/html', bytes: Buffer.from('<b>') },
    ],
  }),
  run(5, { parent: 1, name: 'open' }),
];

/** Saves the trace in the menu of the page, and returns the file's path. The receiver is then of no use to the file. */
async function savedFile(): Promise<string> {
  const { page } = await openPage(trace, { path: `/?trace=${idOf(1)}` });
  await page.getByRole('button', { name: 'Save', exact: true }).click();
  const downloading = page.waitForEvent('download');
  await page.getByRole('link', { name: 'Save as HTML' }).click();
  const download = await downloading;
  expect(download.suggestedFilename()).toBe(`trace-${idOf(1)}.html`);
  const path = join(testFolder(), 'trace.html');
  await download.saveAs(path);
  return path;
}

async function openSaved(context: BrowserContextOptions = {}) {
  return openFile(await savedFile(), context);
}

const select = (page: Page, name: string): Promise<void> => page.getByText(name, { exact: true }).first().click();

test('a saved trace shows its tree and each run, and sends no request', async () => {
  const { page, requests, path } = await openSaved();
  const see = (text: string): Promise<void> => page.getByText(text, { exact: true }).first().waitFor();
  await page.locator('strong', { hasText: 'was refunded' }).waitFor();
  await page.locator('pre .code-keyword', { hasText: 'const' }).waitFor();
  expect(await page.title()).toBe('agent');
  expect(await page.locator('.run-name').allTextContents()).toEqual(['agent', 'model', 'refund', 'open']);
  expect(await page.locator('.bar').count()).toBe(4);
  expect(await page.locator('.first-token').count()).toBe(1);
  for (const text of ['5 runs', '1 failed below: refund failed', '30 tokens', 'Thread', 't-1', 'ada', 'prod'])
    await see(text);
  await page.getByText('3 keys · 1 internal key').click();
  for (const text of ['plan', 'pro']) await see(text);
  await page.locator('.figures').getByText('$0.50').waitFor();
  await page.getByRole('button', { name: 'JSON' }).click();
  await see('"[Redacted]"');
  expect(readFileSync(path, 'utf8')).not.toContain('hunter2');
  await select(page, 'model');
  await see('Find the needle');
  await page.locator('summary', { hasText: 'Events' }).click();
  await see('new_token');
  await select(page, 'refund');
  await see('PaymentError: card expired');
  await page.getByText('refund shop.js:12:3').waitFor();
  expect(
    await page.locator('.picture').evaluate((image) => (image as unknown as { naturalWidth: number }).naturalWidth),
  ).toBe(10);
  await page.getByText('text/html · 3 bytes · left out of this file').waitFor();
  await select(page, 'open');
  await see('Running for');
  expect(requests.map((request) => new URL(request.url()).protocol).filter((one) => one !== 'data:')).toEqual([
    'file:',
  ]);
});

test('a saved trace has the keys and the search of the page, and no controls of the receiver', async () => {
  const { page } = await openSaved();
  const selected = () => page.locator('.tree-row.selected .run-name').textContent();
  await page.locator('.tree-row').first().waitFor();
  for (const [key, name] of [
    ['j', 'model'],
    ['n', 'refund'],
    ['c', 'refund'],
    ['h', 'agent'],
    ['Escape', 'agent'],
  ] as const) {
    await page.keyboard.press(key);
    await expect.poll(selected).toBe(name);
  }
  await page.keyboard.press('/');
  await page.keyboard.type('needle');
  await page.getByText('1 hit', { exact: true }).waitFor();
  await page.keyboard.press('Enter');
  await expect.poll(selected).toBe('model');
  await page.locator('.panel .message').first().waitFor();
  const names = await page
    .locator('button, a')
    .evaluateAll((all) =>
      all.map(
        (one) =>
          (one as unknown as HTMLElementLike).ariaLabel ?? (one as unknown as HTMLElementLike).textContent.trim(),
      ),
    );
  expect(names.filter((name) => /Traces|Compare|Delete|Save|Download|Good|Bad|Import/.test(name))).toEqual([]);
});

interface HTMLElementLike {
  readonly ariaLabel: string | null;
  readonly textContent: string;
}

test('a saved trace has no violation of WCAG in light or dark colours, and fits a narrow screen', async () => {
  const { page } = await openSaved({ viewport: { width: 1280, height: 800 } });
  for (const name of ['agent', 'model', 'refund']) {
    await select(page, name);
    await page.locator('.panel .section').first().waitFor();
    await expectAccessible(page, name);
  }
  await page.setViewportSize({ width: 390, height: 800 });
  await expectToFit(page, 'narrow');
  await page.getByRole('button', { name: 'Steps' }).click();
  await page.getByRole('treegrid').waitFor();
  await page.getByRole('button', { name: 'Theme: system' }).click();
  expect(await page.evaluate('document.documentElement.dataset.theme')).toBe('dark');
});

test('the policy of a saved trace lets no other script, style, request or frame in', async () => {
  const path = await savedFile();
  const { page, complaints } = await openFile(path);
  await page.locator('.tree-row').first().waitFor();
  const probe = `(async () => {
    const add = (name, fields) => document.body.append(Object.assign(document.createElement(name), fields));
    add('script', { textContent: 'globalThis.hits = 1' });
    add('script', { src: 'data:text/javascript,globalThis.hits = 1' });
    add('style', { textContent: 'body { color: rgb(1, 2, 3) !important }' });
    add('iframe', { srcdoc: '<script>parent.hits = 1</script>' });
    const isSent = await fetch('${pathToFileURL(path)}').then(() => true, () => false);
    await new Promise((resolve) => setTimeout(resolve));
    return [globalThis.hits, getComputedStyle(document.body).color === 'rgb(1, 2, 3)', isSent];
  })()`;
  expect(await page.evaluate(probe)).toEqual([undefined, false, false]);
  // The script of the frame runs later than the others.
  await expect.poll(() => complaints.filter((line) => /Executing inline script/.test(line)).length).toBe(2);
  complaints.length = 0;
});
