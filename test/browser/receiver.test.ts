import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { createReceiver, DEFAULT_SCOPE, MemoryStore } from '#src/receiver.ts';
import { serve } from '../http/server.ts';
import { sendJson } from '../receiver/wire.ts';
import { gate } from '../support/gate.ts';
import { testFolder } from '../support/test-folder.ts';
import { openPage } from './page.ts';
import { idOf, run } from './runs.ts';

const KEY = 'a-key-of-some-length';
const TRACE = `/?trace=${idOf(1)}`;
const newcomer = run(9, { at: 9_000, name: 'newcomer' });
const runs = [
  run(1, { name: 'agent', ms: 9 }),
  run(2, { parent: 1, name: 'model', run_type: 'llm', ms: 5, inputs: { input: 'Hi' } }),
];

async function importFile(page: Page, path: string): Promise<void> {
  const choosing = page.waitForEvent('filechooser');
  await page.getByRole('button', { name: 'Import', exact: true }).click();
  await (await choosing).setFiles(path);
}

test('a receiver with a key requires a login, which lasts', async () => {
  const { page, go, see } = await openPage(runs, { receiver: { apiKey: KEY } });
  await page.getByLabel('Key').fill('another');
  await page.keyboard.press('Enter');
  await page.getByRole('alert').waitFor();
  await page.getByLabel('Key').fill(KEY);
  await page.keyboard.press('Enter');
  await see('agent');
  await see('live');
  await go(TRACE);
  await see('model');
});

test('a login with the write key names the key to use', async () => {
  const { page } = await openPage(runs, { receiver: { apiKey: KEY, writeKey: 'only-to-send-runs' } });
  await page.getByLabel('Key').fill('only-to-send-runs');
  await page.keyboard.press('Enter');
  await page
    .getByRole('alert')
    .getByText('This is the write key: log in with the key in RUNSPAN_RECEIVER_KEY')
    .waitFor();
});

test('a key in the URL is used and removed', async () => {
  const { page, see } = await openPage(runs, { receiver: { apiKey: KEY }, path: '/?view=runs#key=another' });
  await page.getByRole('alert').getByText('The API key is not valid for this receiver').waitFor();
  await page.evaluate(`location.hash = 'key=${KEY}'`);
  await see('agent');
  expect(new URL(page.url()).href.replace(/.*\//, '')).toBe('?view=runs');
});

test('feedback is given with a button or a form, and appears in the run and in the list', async () => {
  const { page, store, go, see } = await openPage(runs, { path: `${TRACE}&run=${idOf(1)}` });
  await page.getByRole('button', { name: 'Good' }).click();
  await page.locator('.feedback li').filter({ hasText: 'rating' }).filter({ hasText: '1' }).waitFor();
  await page.getByText('Add details').click();
  await page.getByLabel('Key').fill('tone');
  await page.getByLabel('Score').fill('0.5');
  await page.getByLabel('Comment').fill('A <b>little</b> dry');
  await page.getByRole('button', { name: 'Submit feedback' }).click();
  await see('A <b>little</b> dry');
  expect(
    (await store.feedback(DEFAULT_SCOPE, [idOf(1)])).map(({ key, score, comment }) => ({ key, score, comment })),
  ).toEqual([
    { key: 'rating', score: 1, comment: undefined },
    { key: 'tone', score: 0.5, comment: 'A <b>little</b> dry' },
  ]);
  await go('/');
  await see('tone 0.5');
});

test('feedback of others appears in the open run', async () => {
  const { page, receiver, see, store } = await openPage(runs, { path: `${TRACE}&run=${idOf(2)}` });
  await see('Feedback');
  await sendJson(receiver, 'POST', '/query/feedback', { run_id: idOf(2), key: 'of-another', score: 1 });
  await see('of-another');
  expect(await page.getByText('withdrawn').count()).toBe(0);
  const times = { created_at: '2026-11-20T07:00:00.000000Z', modified_at: '2026-11-20T07:00:00.000000Z' };
  await store.addFeedback(DEFAULT_SCOPE, { id: idOf(3), run_id: idOf(2), key: 'empty', ...times });
  await page.locator('.feedback li').filter({ hasText: 'empty' }).filter({ hasText: 'withdrawn' }).waitFor();
});

test('Escape leaves a text box without losing its text', async () => {
  const { page } = await openPage(runs, { path: TRACE });
  await page.getByText('Add details').click();
  await page.getByLabel('Comment').fill('half a word');
  await page.keyboard.press('Escape');
  expect(await page.getByLabel('Comment').inputValue()).toBe('half a word');
  await page.keyboard.press('Escape');
  await page.getByRole('grid', { name: 'Traces' }).waitFor();
});

test('a trace is exported to a file and imported elsewhere, and so are JSON lines', async () => {
  const folder = testFolder({ 'runs.jsonl': `${JSON.stringify({ ...newcomer.fields, id: newcomer.id })}\n` });
  const path = join(folder, 'trace.json');
  const here = await openPage(runs, { path: TRACE });
  const downloading = here.page.waitForEvent('download');
  await here.page.getByRole('button', { name: 'Save', exact: true }).click();
  await here.page.getByRole('link', { name: 'JSON' }).click();
  await (await downloading).saveAs(path);
  expect(readFileSync(path, 'utf8')).toContain(idOf(2));
  const there = await openPage([]);
  await importFile(there.page, path);
  await there.see('Imported 1 trace with 2 runs from trace.json');
  await there.see('agent');
  writeFileSync(path, '{"not": "a trace"}');
  await importFile(there.page, path);
  await expect.poll(() => there.page.locator('.notice').textContent()).not.toContain('Imported');
  await importFile(there.page, join(folder, 'runs.jsonl'));
  await there.see('Imported 1 trace with 1 run from runs.jsonl');
  await there.see('newcomer');
});

// Browsers trust 127.0.0.1, but not this address, which is as that of another machine.
test('over plain HTTP to another machine, a file is imported and a text is copied', async () => {
  const error = 'Error: no\r\n  at b';
  const lines = JSON.stringify({ ...run(1, { error }).fields, id: idOf(1) });
  const path = join(testFolder({ 'runs.jsonl': lines }), 'runs.jsonl');
  const { page, receiver, see } = await openPage([], { receiver: { host: '0.0.0.0', apiKey: KEY } });
  const origin = `http://0.0.0.0:${new URL(receiver.url).port}`;
  await page.goto(`${origin}/#key=${KEY}`);
  expect(await page.evaluate('isSecureContext')).toBe(false);
  await importFile(page, path);
  await see('Imported 1 trace with 1 run from runs.jsonl');
  await page.goto(`${origin}${TRACE}`);
  await page.evaluate(`addEventListener('paste', ({ clipboardData: data }) => { pasted = data.getData('text'); })`);
  const pasted = async () => {
    await page.getByLabel('Copy the error').click();
    await page.keyboard.press('Control+V');
    return page.evaluate('globalThis.pasted');
  };
  // Tests of other files share the clipboard.
  await expect.poll(pasted).toBe(error);
});

test('an import shows how much of the file is sent, and can be cancelled', async () => {
  const trace = { format: 'runspan-trace', version: 1, runs: [{ ...runs[0]?.fields, id: idOf(1) }] };
  const path = join(testFolder({ 'trace.json': JSON.stringify(trace) }), 'trace.json');
  const [stored, opened] = [gate(), gate()];
  const store = new MemoryStore();
  vi.spyOn(store, 'apply').mockImplementation(async () => {
    stored.open();
    await opened;
    return 0;
  });
  const { page, see } = await openPage([], { receiver: { store } });
  onTestFinished(() => opened.open());
  await importFile(page, path);
  await stored;
  await page.getByText(/^Importing trace\.json: sent (\d+ B) of \1$/).waitFor();
  await page.getByRole('button', { name: 'Cancel' }).click();
  await see('Cancelled. Runs of trace.json that were stored stay');
  expect(await page.getByText(/^Importing/).count()).toBe(0);
});

describe('deleting', () => {
  test('a trace shows how many runs it deletes, and asks for a confirmation', async () => {
    const { page, store, rows, see } = await openPage([...runs, newcomer], { path: TRACE });
    await page.getByRole('button', { name: 'Delete this trace' }).click();
    await page.getByRole('dialog').getByText('This deletes 2 runs of 1 trace').waitFor();
    await page.keyboard.press('Escape');
    await page.locator('dialog').waitFor({ state: 'detached' });
    expect((await store.outline(DEFAULT_SCOPE, idOf(1))).length).toBe(2);

    await page.getByRole('button', { name: 'Delete this trace' }).click();
    await page.getByRole('button', { name: 'Delete 2 runs' }).click();
    await see('Deleted 2 runs of 1 trace');
    await see('newcomer');
    await expect.poll(() => rows.count()).toBe(1);
    expect(await store.outline(DEFAULT_SCOPE, idOf(1))).toEqual([]);
  });

  test('the selected project can be deleted', async () => {
    const { page, store, see } = await openPage([...runs, run(9, { session_name: 'bank', name: 'newcomer' })]);
    await see('newcomer');
    expect(await page.getByRole('button', { name: /^Delete/ }).count()).toBe(0);
    await page.getByRole('combobox', { name: 'Project' }).selectOption('bank');
    await page.getByRole('button', { name: 'Delete the project bank' }).click();
    await page.getByRole('button', { name: 'Delete 1 run', exact: true }).click();
    await see('Deleted 1 run of 1 trace');
    await see('agent');
    expect((await store.outline(DEFAULT_SCOPE, idOf(9))).length).toBe(0);
    expect((await store.outline(DEFAULT_SCOPE, idOf(1))).length).toBe(2);
  });
});

test('with a key that only reads, the page has no controls to delete, import or give feedback', async () => {
  const { page, go, see } = await openPage(runs);
  const session = { permission: 'read', tenant: 'default' };
  await page.route('**/query/session', (route) => route.fulfill({ json: session }));
  await go(`${TRACE}&run=${idOf(2)}`);
  await see('Hi');
  for (const name of [/^Delete/, 'Import', 'Good', 'Submit feedback']) {
    expect(await page.getByRole('button', { name }).count()).toBe(0);
  }
});

test('a paused page or hidden tab does not change, and catches up later', async () => {
  const { page, store, see } = await openPage(runs);
  const setHidden = (isHidden: boolean) =>
    page.evaluate(`{
      Object.defineProperty(document, 'hidden', { configurable: true, get: () => ${isHidden} });
      document.dispatchEvent(new Event('visibilitychange'));
    }`);
  await page.getByText('live', { exact: true }).click();
  await see('paused');
  await store.apply(DEFAULT_SCOPE, [newcomer]);
  expect(await page.getByText('newcomer').count()).toBe(0);
  await page.getByText('paused', { exact: true }).click();
  await see('newcomer');
  await setHidden(true);
  await page.getByText('live', { exact: true }).waitFor({ state: 'detached' });
  await store.apply(DEFAULT_SCOPE, [run(10, { at: 10_000, name: 'latest' })]);
  expect(await page.getByText('latest').count()).toBe(0);
  await setHidden(false);
  await see('latest');
});

test('image attachments are shown or explained, and others are downloads', async () => {
  const png = Buffer.from(
    'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
    'base64',
  );
  const attachments = [
    { name: 'pixel', mimeType: 'image/png', bytes: png },
    { name: 'page', mimeType: 'text/html', bytes: Buffer.from('<p>') },
    { name: 'fake', mimeType: 'image/png', bytes: Buffer.from('no image') },
  ];
  const { page, see } = await openPage([run(1, { ms: 5, attachments })], { path: TRACE });
  const image = page.getByRole('img', { name: 'pixel' });
  await expect
    .poll(() => image.evaluate((element) => (element as unknown as { naturalWidth: number }).naturalWidth))
    .toBe(1);
  expect(await page.getByRole('link', { name: 'page' }).getAttribute('download')).not.toBeNull();
  await see('fake: the image cannot be shown');
  expect(await page.locator('img').count()).toBe(1);
});

test('after the receiver restarts, the list, trace, run and payload are read again', async () => {
  const { page, receiver, store, complaints, see } = await openPage(runs, { path: TRACE });
  await see('live');
  await see('model');
  await receiver.close();
  await see('no connection');
  await page.keyboard.press('j');
  await page.getByText('The receiver does not respond').waitFor();
  await store.apply(DEFAULT_SCOPE, [run(3, { parent: 1, name: 'newcomer', ms: 1 })]);
  const again = await createReceiver({ store, port: Number(new URL(receiver.url).port) });
  onTestFinished(() => again.close());
  await see('newcomer');
  await see('Hi');
  await expect.poll(() => page.getByText('The receiver does not respond').count()).toBe(0);
  await page.close();
  // Chromium logs each refused connection.
  complaints.length = 0;
});

test('a missing trace has a way back to the list', async () => {
  const { page, see } = await openPage(runs, { path: `/?trace=${idOf(77)}` });
  await see('Trace not found');
  await page.getByRole('button', { name: 'Back to the list' }).click();
  await see('agent');
});

test('a feedback link shows a button that submits the feedback', async () => {
  const { page, receiver, store, go, see } = await openPage(runs);
  const token = { run_id: idOf(1), feedback_key: 'liked' };
  const { body } = await sendJson(receiver, 'POST', '/feedback/tokens', token);
  await go(`${new URL(`${body.url}`).pathname}?score=1&comment=yes`);
  expect(await store.feedback(DEFAULT_SCOPE, [idOf(1)])).toEqual([]);
  await page.getByRole('button', { name: 'Send' }).click();
  await see('Thank you.');
  expect(await store.feedback(DEFAULT_SCOPE, [idOf(1)])).toMatchObject([{ key: 'liked', score: 1, comment: 'yes' }]);
});

test('a page on another port or host can link to the page, but cannot load anything from the receiver', async () => {
  const { page, receiver, store, complaints, see } = await openPage(runs);
  const statistics = vi.spyOn(store, 'statistics');
  const { port } = new URL(receiver.url);
  const links = ['localhost', '127.0.0.1'].map(
    (host) => `<img src="http://${host}:${port}/query/statistics"><a href="http://${host}:${port}/">${host}</a>`,
  );
  const { url } = await serve((_, response) => response.setHeader('content-type', 'text/html').end(links.join('')));
  const address = url.replace('127.0.0.1', 'localhost');
  await page.goto(address);
  // The browser logs an error for each refused image.
  expect(complaints.splice(0)).toHaveLength(2);
  expect(statistics).not.toHaveBeenCalled();
  for (const host of ['localhost', '127.0.0.1']) {
    await page.goto(address);
    await page.getByText(host, { exact: true }).click();
    await see('agent');
  }
  complaints.length = 0;
});
