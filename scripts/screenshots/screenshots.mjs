// Writes docs/images: screenshots of the receiver's page with a customer support agent's traces, and of the chat
// application.
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { chromium } from 'playwright-core';
import { createReceiver } from 'runspan/receiver';
import { chromiumOptions } from '../chromium.mjs';
import { shootChat } from './chat.mjs';
import { supportAgentRuns } from './support-agent.mjs';

const images = fileURLToPath(new URL('../../docs/images/', import.meta.url));
const runs = supportAgentRuns(Date.now());
const last = (name, field) => runs.findLast((run) => run.name === name && run[field] !== undefined);
const failed = last('issue_refund', 'error');
const answer = runs.findLast((run) => run.name === 'answer' && run.outputs?.choices[0].message.content.includes('1. '));

const receiver = await createReceiver();
const browser = await chromium.launch(chromiumOptions());
try {
  await send('/runs/batch', { post: runs, patch: [] });
  await send('/query/feedback', { run_id: answer.trace_id, key: 'rating', score: 1, comment: 'Quick and clear.' });
  await send('/query/feedback', { run_id: failed.trace_id, key: 'rating', score: -1 });
  mkdirSync(images, { recursive: true });
  const page = await browser.newPage({ viewport: { width: 1440, height: 900 }, reducedMotion: 'reduce' });
  await shoot(page, 'list', '/', 'PaymentError');
  // README.md shows this image on its first screen.
  await page.setViewportSize({ width: 1440, height: 560 });
  await shoot(page, 'trace', `/?trace=${failed.trace_id}&run=${failed.id}`, 'PaymentClient.refund');
  await page.setViewportSize({ width: 1440, height: 900 });
  await shoot(page, 'conversation', `/?trace=${answer.trace_id}&run=${answer.id}`, 'A replacement');
  await shoot(page, 'statistics', '/?view=statistics', 'issue_refund');
  for (const name of await shootChat(browser, images)) console.log(`docs/images/${name}`);
} finally {
  await browser.close();
  await receiver.close();
}

async function send(path, body) {
  const headers = { 'content-type': 'application/json' };
  const answered = await fetch(receiver.url + path, { method: 'POST', headers, body: JSON.stringify(body) });
  if (!answered.ok) throw new Error(`${path} was answered with ${answered.status}: ${await answered.text()}`);
}

/** Takes a screenshot once the page shows this text and nothing moves any more. */
async function shoot(page, name, path, text) {
  await page.goto(receiver.url + path);
  await page.getByText(text).first().waitFor();
  await page.getByText('live', { exact: true }).waitFor();
  await page.evaluate(() => new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve, 100))));
  await page.screenshot({ path: join(images, `${name}.png`) });
  console.log(`docs/images/${name}.png`);
}
