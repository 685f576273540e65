// Takes screenshots of the receiver's page with the traces of examples/support-agent, and of the chat application. Writes
// them to docs/images/, and their texts to docs/images/texts.txt. With `--check`, writes nothing, and exits with 1 if a text
// differs from that file.
import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { chromium } from 'playwright-core';
import { createReceiver } from 'runspan/receiver';
import { chromiumOptions } from '../chromium.mjs';
import { installExample, recordingNode } from '../example-project.mjs';
import { importFromTests } from '../import-from-tests.mjs';
import { root } from '../run.mjs';
import { shootChat } from './chat.mjs';

const { masked } = await importFromTests('package/snippets.ts');

const REFUND = 'Please refund order 47760, I cancelled it yesterday.';
const DAMAGE = 'My headphones from order 48213 arrived with a crack. What can I do?';
const QUESTIONS = [
  'Do you ship to Norway?',
  'Where is my parcel? Order 48801.',
  'Can I change the address of order 48990?',
  DAMAGE,
  'How long does shipping to Norway take?',
  'My parcel, order 48801, is late.',
  REFUND,
  'The address of order 48990 is wrong.',
];

const images = join(root, 'docs/images');
const isCheck = process.argv.includes('--check');
/** The text of each screenshot, in their order. */
const texts = [];

const receiver = await createReceiver();
const browser = await chromium.launch(chromiumOptions());
try {
  await ask(QUESTIONS);
  await shootPages();
  await shootChat(browser, save);
} finally {
  await browser.close();
  await receiver.close();
}
const file = join(images, 'texts.txt');
const text = texts.join('\n');
if (!isCheck) writeFileSync(file, text);
else if (text !== readFileSync(file, 'utf8')) {
  console.error(
    `${firstDifference(readFileSync(file, 'utf8'), text)}\nTake the screenshots again: npm run generate -- screenshots`,
  );
  process.exitCode = 1;
}

/** Runs the example, untouched, in a project of its own. */
async function ask(questions) {
  const folder = mkdtempSync(join(tmpdir(), 'shop-'));
  try {
    writeFileSync(join(folder, 'package.json'), '{ "private": true, "type": "module" }\n');
    installExample('examples/support-agent', folder);
    const env = {
      PATH: process.env.PATH,
      RUNSPAN_ENDPOINT: receiver.url,
      RUNSPAN_PROJECT: 'shop',
      RUNSPAN_DURABILITY: 'memory',
      NODE_OPTIONS: `--import ${pathToFileURL(join(root, 'dist/register.js'))}`,
    };
    const { stderr } = await promisify(execFile)(recordingNode(), ['app.js', ...questions], { cwd: folder, env });
    if (stderr !== '') throw new Error(`examples/support-agent: ${stderr}`);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

async function shootPages() {
  const runs = await receiver.runs();
  const failed = runs.find(({ error }) => error !== undefined);
  const root = runs.find(({ parent_run_id, inputs }) => parent_run_id === undefined && inputs.prompt === DAMAGE);
  const answer = runs.findLast(({ trace_id, run_type }) => trace_id === root.trace_id && run_type === 'llm');
  const page = await browser.newPage({ viewport: { width: 1440, height: 560 }, reducedMotion: 'reduce' });
  await shoot(page, 'list', '/', 'wrong');
  await page.setViewportSize({ width: 1440, height: 820 });
  await shoot(page, 'trace', `/?trace=${failed.trace_id}&run=${failed.id}`, 'Make a test');
  await page.emulateMedia({ colorScheme: 'dark' });
  await save(page, 'trace-dark');
  await page.emulateMedia({ colorScheme: 'light' });
  await page.setViewportSize({ width: 1440, height: 900 });
  await shoot(page, 'conversation', `/?trace=${answer.trace_id}&run=${answer.id}`, 'A replacement');
  await shoot(page, 'statistics', '/?view=statistics', 'issue_refund');
}

/** Takes a screenshot once the page shows this text and nothing moves any more. */
async function shoot(page, name, path, text) {
  await page.goto(receiver.url + path);
  await page.getByText(text).first().waitFor();
  await page.getByText('live', { exact: true }).waitFor();
  await page.evaluate(() => new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve, 100))));
  await save(page, name);
}

async function save(page, name) {
  // biome-ignore lint/performance/useDomNodeTextContent: hidden text is not in the picture.
  const text = (await page.locator('body').innerText())
    // Between the elements of a line, the text has no space.
    .replaceAll(/(?<=\d m?s)(?=\d)|(?=\d{4}-\d{2}-\d{2} )/g, ' ')
    .replaceAll(/(?:file:\/)?\/\S*\/(?=shop\.js|node_modules)/g, '<folder>/')
    .replaceAll(/(node:internal\S*?):[\d:]+/g, '$1')
    // Which run of a trace took most of the time differs.
    .replaceAll(/(?<=\d m?s)( ·|\n)\s?[\d.]+ %/g, '')
    .replaceAll(/(?<=\b|shop)now\b|\d+ [smh] ago/g, '<age>');
  // The number of times on the axis differs, too.
  const lines = masked(text).filter((line, at, all) => line !== '<duration>' || all[at - 1] !== line);
  texts.push(`# ${name}.png\n${lines.join('\n')}\n`);
  if (isCheck) return;
  await page.screenshot({ path: join(images, `${name}.png`) });
  console.log(`docs/images/${name}.png`);
}

function firstDifference(before, after) {
  const [old, fresh] = [before.split('\n'), after.split('\n')];
  const at = [...old, ...fresh].findIndex((_, index) => fresh[index] !== old[index]);
  const image = fresh.slice(0, at + 1).findLast((line) => line.startsWith('# '));
  return `${image}: docs/images/texts.txt has the line "${old[at]}", the page "${fresh[at]}"`;
}
