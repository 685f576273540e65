import { expect, test } from 'vitest';
import { createExporter, startRun } from '#src/index.ts';
import { environmentOf } from '../support/environment.ts';
import { logLines } from '../support/log-lines.ts';
import { runRunspan } from '../support/program.ts';
import { startReceiver } from '../support/receiver.ts';
import { service } from './service.ts';

/** Characters of Unicode's general category Cf (direction marks, zero-width characters, a soft hyphen, a tag) and their escapes. */
const HIDDEN: readonly (readonly [string, string])[] = [
  ['\u202e', '\\u202e'],
  ['\u200b', '\\u200b'],
  ['\u200d', '\\u200d'],
  ['\u2060', '\\u2060'],
  ['\ufeff', '\\ufeff'],
  ['\u00ad', '\\xad'],
  ['\u{e0041}', '\\u{e0041}'],
];
const NAME = `pay${HIDDEN.map(([character]) => `${character}x`).join('')}`;
const SHOWN = `pay${HIDDEN.map(([, escaped]) => `${escaped}x`).join('')}`;

test('a log line escapes characters that hide or reorder text [security 17]', async () => {
  const { server, lines } = await service(() => ({ status: 400 }));
  const onDrop = (_: string, { name }: { readonly name: string }): never => {
    throw new Error(name);
  };
  const exporter = createExporter({ endpoint: server.url, onDrop });
  startRun({ name: NAME, exporter, [NAME]: 1 } as never).end();
  await exporter.close({ timeoutMs: 50 });
  expect(lines.find((line) => line.includes('startRun'))).toContain(SHOWN);
  expect(lines.find((line) => line.includes('onDrop'))).toContain(`pay${HIDDEN[0]?.[1]}`);
  expect(lines.join('')).not.toMatch(/\p{Cf}/u);
});

test('the command line escapes characters that hide or reorder text [security 17]', async () => {
  environmentOf();
  const receiver = await startReceiver();
  const exporter = createExporter({ endpoint: receiver.url });
  const run = startRun({ name: NAME, exporter, inputs: { [NAME]: NAME }, tags: [NAME], metadata: { [NAME]: NAME } });
  run.fail(new Error(NAME));
  await exporter.close();
  const place = ['--url', receiver.url];
  const outputs = await Promise.all([
    runRunspan(['traces', ...place]),
    runRunspan(['traces', '--json', ...place]),
    runRunspan(['show', run.id, ...place]),
    runRunspan(['show', run.id, '--json', ...place]),
    runRunspan(['show', NAME, ...place]),
  ]);
  const texts = outputs.map(({ stdout, stderr }) => stdout + stderr);
  texts.forEach((text, index) => {
    const isJson = index === 1 || index === 3;
    expect(isJson ? JSON.stringify(JSON.parse(text)) : text).toContain(isJson ? NAME : SHOWN);
    expect(text).not.toMatch(/\p{Cf}/u);
  });
});

test.each([
  ['emoji with modifiers, variations and joiners', '👩‍👩‍👧 👩🏽‍💻 🏳️‍🌈 ❤️‍🔥'],
  ['words of scripts that are written with joiners', 'می‌خواهم क्‍ष'],
])('a log line keeps %s unchanged', (_, text) => {
  environmentOf();
  const lines = logLines();
  startRun({ name: 'a', [text]: 1 } as never);
  expect(lines[0]).toContain(text);
});
