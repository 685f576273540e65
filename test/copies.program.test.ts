import { cpSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { RunRecord } from '#src/index.ts';
import { manifest } from './package/repository.ts';
import { root } from './support/folders.ts';
import { runNode } from './support/program.ts';
import { startReceiver } from './support/receiver.ts';
import { testFolder } from './support/test-folder.ts';

test.each([
  ['two copies of one version share the exporters', manifest.version, [1, 1], [3, 3]],
  ['two versions of the package have their own exporters', '999.0.0', [2, 2], [1, 2]],
])('%s and the current run, and deliver each run once', async (_, version, listeners, created) => {
  const receiver = await startReceiver({ strict: true });
  const folder = testFolder();
  const copies = ['first', 'second'].map((name) => join(folder, name));
  for (const copy of copies) cpSync(join(root, 'dist'), join(copy, 'dist'), { recursive: true });
  for (const copy of copies) cpSync(join(root, 'package.json'), join(copy, 'package.json'));
  symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'));
  const core = join(folder, 'second/dist/chunks/core.js');
  writeFileSync(core, readFileSync(core, 'utf8').replace(`${manifest.version}"`, `${version}"`));

  const program = ['test/fixtures/two-copies.mjs', ...copies.map((copy) => join(copy, 'dist'))];
  const { code, stdout, stderr } = await runNode(program, { RUNSPAN_ENDPOINT: receiver.url });
  expect([code, stderr]).toEqual([0, '']);
  expect(JSON.parse(stdout)).toEqual({
    areTwo: true,
    isOneByBothWays: true,
    listeners,
    created,
    flushed: Array.from({ length: 2 }, () => ({ ok: true, pending: 0 })),
  });
  const runs = await receiver.runs();
  const [outer, middle, inner] = ['outer', 'middle', 'inner'].map((name) => runs.find((run) => run.name === name));
  expect(runs).toHaveLength(3);
  expect([middle?.parent_run_id, inner?.parent_run_id]).toEqual([outer?.id, middle?.id]);
});

test.each([
  ['import', 'require'],
  ['require', 'import'],
])('%s and %s of the package share the exporters, the current run, the log and the classes', async (...order) => {
  const receiver = await startReceiver({ strict: true });

  const program = ['test/fixtures/two-formats.mjs', join(root, 'dist'), receiver.url, ...order];
  const { code, stdout, stderr } = await runNode(program);
  expect([code, stderr]).toEqual([0, '']);
  expect(JSON.parse(stdout)).toEqual({
    areTwo: true,
    isCurrent: true,
    recorded: ['recorded'],
    isError: [true, true],
    isOther: false,
    lines: [expect.stringContaining('traceable(fn): expected a function')],
    flushed: { ok: true, pending: 0 },
    created: [6, 6],
    sent: 6,
    listeners: [1, 1],
  });
  const runs = await receiver.runs();
  const named = (name: string): RunRecord[] => runs.filter((run) => run.name === name);
  const [[outer], [middle], [byHand]] = [named('outer'), named('middle'), named('by hand')];
  expect(runs).toHaveLength(6);
  expect(outer?.tags).toEqual(['outer']);
  expect(middle?.parent_run_id).toBe(outer?.id);
  const inner = named('inner').map((run) => [run.parent_run_id, run.inputs, run.session_name]);
  expect(inner).toHaveLength(3);
  expect(inner).toEqual(
    expect.arrayContaining([
      [middle?.id, { pin: '[Redacted]' }, 'default'],
      [byHand?.id, {}, 'default'],
      [undefined, {}, 'own'],
    ]),
  );
});
