import { cpSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { createReceiver } from '../src/receiver.ts';
import { root, temporaryFolder } from './support/folders.ts';
import { runNode } from './support/program.ts';

test('two copies of the package share the current run, and deliver each run once', async () => {
  const receiver = await createReceiver({ strict: true });
  const folder = temporaryFolder();
  onTestFinished(async () => {
    folder.remove();
    await receiver.close();
  });
  const copies = ['first', 'second'].map((name) => join(folder.path, name));
  for (const copy of copies) cpSync(join(root, 'dist'), join(copy, 'dist'), { recursive: true });
  for (const copy of copies) cpSync(join(root, 'package.json'), join(copy, 'package.json'));
  symlinkSync(join(root, 'node_modules'), join(folder.path, 'node_modules'));

  const program = ['test/fixtures/two-copies.mjs', ...copies.map((copy) => join(copy, 'dist'))];
  const { code, stdout, stderr } = await runNode(program, { RUNSPAN_ENDPOINT: receiver.url });
  expect([code, stderr]).toEqual([0, '']);
  expect(JSON.parse(stdout)).toEqual({
    areTwo: true,
    isOneByBothWays: true,
    listeners: [2, 2],
    created: [1, 2],
    flushed: Array.from({ length: 2 }, () => ({ ok: true, pending: 0 })),
  });
  const runs = await receiver.runs();
  const [outer, middle, inner] = ['outer', 'middle', 'inner'].map((name) => runs.find((run) => run.name === name));
  expect(runs).toHaveLength(3);
  expect([middle?.parent_run_id, inner?.parent_run_id]).toEqual([outer?.id, middle?.id]);
});
