import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { runNode } from '../support/program.ts';
import { startReceiver } from '../support/receiver.ts';
import { filesBelow } from '../support/spool.ts';
import { testFolder } from '../support/test-folder.ts';

const ways = ['end', 'exit', 'throw', 'signal', 'kill'];
const cases = ways.flatMap((how) => ['memory', 'spill', 'write-ahead'].map((durability) => [how, durability] as const));

it.each(cases)('at %s with %s, a process sends, writes and prints nothing unmasked', async (how, durability) => {
  const receiver = await startReceiver();
  const folder = testFolder();
  const env = {
    RUNSPAN_ENDPOINT: receiver.url,
    RUNSPAN_DURABILITY: durability,
    RUNSPAN_SPOOL_DIR: folder,
    RUNSPAN_LOG: 'debug',
  };
  const startMs = performance.now();
  const { stdout, stderr } = await runNode(['test/fixtures/masks-program.mjs', how], env);
  if (how === 'end') expect(performance.now() - startMs).toBeLessThan(10_000);
  const files = filesBelow(folder).map((path) => readFileSync(join(folder, path), 'latin1'));
  const runs = await receiver.runs({});
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
