import { readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { expect, onTestFinished, test, vi } from 'vitest';
import { createReceiver } from '../../src/receiver.ts';
import { temporaryFolder } from '../support/folders.ts';
import { openPage } from './page.ts';
import { idOf, run } from './runs.ts';

const KEY = 'a-key-of-some-length';

const runs = [
  run(1, { name: 'agent', ms: 9 }),
  run(2, { parent: 1, name: 'model', run_type: 'llm', ms: 5, inputs: { input: 'Hi' } }),
];

test('a receiver with a key asks for it, and the page knows it from then on', async () => {
  const { page, go } = await openPage(runs, { receiver: { apiKey: KEY } });
  await page.getByLabel('Key').fill('another');
  await page.keyboard.press('Enter');
  await page.getByRole('alert').waitFor();
  await page.getByLabel('Key').fill(KEY);
  await page.keyboard.press('Enter');
  await page.getByText('agent', { exact: true }).waitFor();
  await page.getByText('live', { exact: true }).waitFor();
  await go(`/?trace=${idOf(1)}`);
  await page.getByText('model', { exact: true }).waitFor();
});

test('a key in the address is used, and taken out of it', async () => {
  const { page } = await openPage(runs, { receiver: { apiKey: KEY }, path: `/?view=runs#key=${KEY}` });
  await page.getByText('agent', { exact: true }).waitFor();
  expect(new URL(page.url()).hash).toBe('');
  expect(new URL(page.url()).search).toBe('?view=runs');
});

test('feedback is given with one click, or at length, and seen at once and in the list', async () => {
  const { page, store, go } = await openPage(runs, { path: `/?trace=${idOf(1)}&run=${idOf(1)}` });
  await page.getByRole('button', { name: 'Good' }).click();
  await page.locator('.feedback li').filter({ hasText: 'rating' }).filter({ hasText: '1' }).waitFor();
  await page.getByText('Say more').click();
  await page.getByLabel('Key').fill('tone');
  await page.getByLabel('Score').fill('0.5');
  await page.getByLabel('Comment').fill('A <b>little</b> dry');
  await page.getByRole('button', { name: 'Give feedback' }).click();
  await page.getByText('A <b>little</b> dry').waitFor();
  expect((await store.feedback(idOf(1))).map(({ key, score, comment }) => ({ key, score, comment }))).toEqual([
    { key: 'rating', score: 1, comment: undefined },
    { key: 'tone', score: 0.5, comment: 'A <b>little</b> dry' },
  ]);
  await go('/');
  await page.getByText('tone 0.5').waitFor();
});

test('a trace is exported as a file, and read from it elsewhere', async () => {
  const folder = temporaryFolder();
  onTestFinished(() => folder.remove());
  const here = await openPage(runs, { path: `/?trace=${idOf(1)}` });
  const downloading = here.page.waitForEvent('download');
  await here.page.getByRole('link', { name: 'JSON' }).click();
  const path = join(folder.path, 'trace.json');
  await (await downloading).saveAs(path);
  expect(readFileSync(path, 'utf8')).toContain(idOf(2));
  const there = await openPage([]);
  const choosing = there.page.waitForEvent('filechooser');
  await there.page.getByRole('button', { name: 'Import' }).click();
  await (await choosing).setFiles(path);
  await there.page.getByText('1 trace with 2 runs read from trace.json').waitFor();
  await there.page.getByText('agent', { exact: true }).waitFor();
  writeFileSync(path, '{"not": "a trace"}');
  const again = there.page.waitForEvent('filechooser');
  await there.page.getByRole('button', { name: 'Import' }).click();
  await (await again).setFiles(path);
  await expect.poll(() => there.page.locator('.notice').textContent()).not.toContain('read from');
});

test('a paused page stands still, and catches up when it goes on', async () => {
  const { page, store } = await openPage(runs);
  await page.getByText('live', { exact: true }).click();
  await page.getByText('paused', { exact: true }).waitFor();
  await store.apply([run(9, { at: 9_000, name: 'newcomer' })]);
  await page.getByText('paused', { exact: true }).click();
  await page.getByText('newcomer').waitFor();
});

test('pictures beside a payload are shown, other attachments are for download', async () => {
  const png = Buffer.from(
    'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
    'base64',
  );
  const attachments = [
    { name: 'pixel', mimeType: 'image/png', bytes: png },
    { name: 'page', mimeType: 'text/html', bytes: Buffer.from('<p>') },
  ];
  const { page } = await openPage([run(1, { ms: 5, attachments })], { path: `/?trace=${idOf(1)}` });
  const picture = page.getByRole('img', { name: 'pixel' });
  await picture.waitFor();
  await expect
    .poll(() => picture.evaluate((image) => (image as unknown as { naturalWidth: number }).naturalWidth))
    .toBe(1);
  expect(await page.getByRole('link', { name: 'page' }).getAttribute('download')).not.toBeNull();
  expect(await page.locator('img').count()).toBe(1);
});

test('a wrong key in the address is told; one that is put into the address of an open page is used, and taken out', async () => {
  const { page } = await openPage(runs, { receiver: { apiKey: KEY }, path: '/#key=another' });
  await page.getByRole('alert').getByText('This is not the key of this receiver').waitFor();
  await page.evaluate(`location.hash = 'key=${KEY}'`);
  await page.getByText('agent', { exact: true }).waitFor();
  expect(new URL(page.url()).hash).toBe('');
});

test('a receiver that is gone is told, and followed again when it is back: list, trace, run and payload', async () => {
  const { page, receiver, store, complaints } = await openPage(runs, { path: `/?trace=${idOf(1)}` });
  await page.getByText('live', { exact: true }).waitFor();
  await receiver.close();
  await page.getByText('no connection', { exact: true }).waitFor();
  await page.keyboard.press('j');
  await page.getByText('The receiver does not answer').waitFor();
  await store.apply([run(3, { parent: 1, name: 'newcomer', ms: 1 })]);
  const again = await createReceiver({ store, port: Number(new URL(receiver.url).port) });
  onTestFinished(() => again.close());
  await page.getByText('newcomer', { exact: true }).waitFor();
  await page
    .getByText('input: ')
    .or(page.locator('.conversation', { hasText: 'Hi' }))
    .first()
    .waitFor();
  await expect.poll(() => page.getByText('The receiver does not answer').count()).toBe(0);
  // Chromium tells of each request that was refused.
  complaints.length = 0;
});

test('a trace that the receiver has forgotten meanwhile says so', async () => {
  const { page, go } = await openPage(runs);
  await go(`/?trace=${idOf(77)}`);
  await page.getByText('This trace is not here').waitFor();
  await page.getByRole('button', { name: 'Back to the list' }).click();
  await page.getByText('agent', { exact: true }).waitFor();
});

test('feedback that others give is seen in the run that is read', async () => {
  const { page, receiver } = await openPage(runs, { path: `/?trace=${idOf(1)}&run=${idOf(2)}` });
  await page.getByRole('heading', { name: 'Feedback' }).waitFor();
  await fetch(`${receiver.url}/query/feedback`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ run_id: idOf(2), key: 'of-another', score: 1 }),
  });
  await page.getByText('of-another').waitFor();
  expect(await page.getByText('taken back').count()).toBe(0);
  await fetch(`${receiver.url}/query/feedback`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ run_id: idOf(2), key: 'withdrawn' }),
  });
  await page.locator('.feedback li').filter({ hasText: 'withdrawn' }).filter({ hasText: 'taken back' }).waitFor();
});

test('Escape leaves what is written, and does not lose it', async () => {
  const { page } = await openPage(runs, { path: `/?trace=${idOf(1)}` });
  await page.getByText('Say more').click();
  await page.getByLabel('Comment').fill('half a word');
  await page.keyboard.press('Escape');
  expect(await page.getByLabel('Comment').inputValue()).toBe('half a word');
  await page.keyboard.press('Escape');
  await page.getByRole('grid', { name: 'Traces' }).waitFor();
});

test('tabs in the background leave the connections to the one that is seen', async () => {
  const { page, store } = await openPage(runs);
  await page.getByText('live', { exact: true }).waitFor();
  const see = (isSeen: boolean) =>
    page.evaluate(`{
      Object.defineProperty(document, 'hidden', { configurable: true, get: () => ${!isSeen} });
      document.dispatchEvent(new Event('visibilitychange'));
    }`);
  await see(false);
  await page.getByText('live', { exact: true }).waitFor({ state: 'detached' });
  await store.apply([run(9, { at: 9_000, name: 'newcomer' })]);
  expect(await page.getByText('newcomer').count()).toBe(0);
  await see(true);
  await page.getByText('newcomer').waitFor();
});

test('a feedback link shows a button that submits the feedback', async () => {
  const { page, receiver, store, go } = await openPage(runs);
  const body = JSON.stringify({ run_id: idOf(1), feedback_key: 'liked' });
  const headers = { 'content-type': 'application/json' };
  const minted = await fetch(`${receiver.url}/feedback/tokens`, { method: 'POST', headers, body });
  const { url } = (await minted.json()) as { url: string };
  await go(`${new URL(url).pathname}?score=1&comment=yes`);
  expect(await store.feedback(idOf(1))).toEqual([]);
  await page.getByRole('button', { name: 'Send' }).click();
  await page.getByText('Thank you.').waitFor();
  expect(await store.feedback(idOf(1))).toMatchObject([{ key: 'liked', score: 1, comment: 'yes' }]);
});

test('a page on another port or host can link to the page, but cannot load anything from the receiver', async () => {
  const { page, receiver, store, complaints } = await openPage(runs);
  const statistics = vi.spyOn(store, 'statistics');
  const { port } = new URL(receiver.url);
  const other = createServer((_, response) => {
    const links = ['localhost', '127.0.0.1'].map(
      (host) => `<img src="http://${host}:${port}/query/statistics"><a href="http://${host}:${port}/">${host}</a>`,
    );
    response.writeHead(200, { 'content-type': 'text/html' }).end(links.join(''));
  });
  await new Promise<void>((resolve) => other.listen(0, resolve));
  onTestFinished(() => new Promise<void>((resolve) => other.close(() => resolve())));
  const address = `http://localhost:${(other.address() as AddressInfo).port}/`;
  await page.goto(address);
  // The browser logs an error for each refused image.
  expect(complaints.splice(0)).toHaveLength(2);
  expect(statistics).not.toHaveBeenCalled();
  for (const host of ['localhost', '127.0.0.1']) {
    await page.goto(address);
    await page.getByText(host, { exact: true }).click();
    await page.getByText('agent', { exact: true }).waitFor();
  }
  complaints.length = 0;
});
