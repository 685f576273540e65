import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { createReceiver } from '#src/receiver.ts';
import { temporaryFolder } from '../support/folders.ts';
import { runNode } from '../support/program.ts';
import { filesBelow } from '../support/spool.ts';

const ways = ['end', 'exit', 'throw', 'signal', 'kill'];
const cases = ways.flatMap((how) => ['memory', 'spill', 'write-ahead'].map((durability) => [how, durability] as const));

it.each(cases)('at %s with %s, a process sends, writes and prints nothing unmasked', async (how, durability) => {
  const receiver = await createReceiver();
  const folder = temporaryFolder();
  const env = {
    RUNSPAN_ENDPOINT: receiver.url,
    RUNSPAN_DURABILITY: durability,
    RUNSPAN_SPOOL_DIR: folder.path,
    RUNSPAN_LOG: 'debug',
  };
  const startMs = performance.now();
  const { stdout, stderr } = await runNode(['test/fixtures/masks-program.mjs', how], env);
  if (how === 'end') expect(performance.now() - startMs).toBeLessThan(10_000);
  const files = filesBelow(folder.path).map((path) => readFileSync(join(folder.path, path), 'latin1'));
  const runs = await receiver.runs({});
  await receiver.close();
  folder.remove();
  expect([...files, stdout, stderr, JSON.stringify(runs)].join('\n')).not.toContain('hunter2');
  if (how === 'end') {
    const found = runs
      .filter(({ name }) => name !== 'open')
      .map(({ name, inputs, end_time }) => [name, inputs, !!end_time]);
    const nothing = ['processed', {}, true];
    const sync = ['sync', 'inner', 'soon', 'inner'].map((name) => [name, { masked: true }, true]);
    expect(found).toEqual(expect.arrayContaining([...sync, ['never', {}, true], nothing]));
    expect(found).toHaveLength(9);
  }
  if (durability === 'write-ahead' && how === 'kill') expect(files.join('')).toContain('never');
});
