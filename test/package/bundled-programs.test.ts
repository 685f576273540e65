import { join } from 'node:path';
import { type BuildOptions, build } from 'esbuild';
import { expect, it } from 'vitest';
import { root } from '../support/folders.ts';
import { runNode } from '../support/program.ts';
import { startReceiver } from '../support/receiver.ts';
import { testFolder } from '../support/test-folder.ts';

const PROGRAM = `
  import { flush, stats, traceable } from 'runspan';
  const double = traceable(async (number) => 2 * number, { name: 'double' });
  const fail = traceable(() => { throw new Error('no'); }, { name: 'fail' });
  try { fail(); } catch {}
  double(21).then(async (result) => {
    console.log(JSON.stringify([result, await flush(), stats().sent]));
  });
`;

/** Bundles the program into the only file of an empty folder. */
async function bundled(options: BuildOptions): Promise<string> {
  const outfile = join(testFolder(), options.format === 'cjs' ? 'program.cjs' : 'program.mjs');
  // undici is CommonJS, and requires Node's modules.
  const banner = { js: `import { createRequire } from 'node:module'; const require = createRequire(import.meta.url);` };
  await build({
    stdin: { contents: PROGRAM, resolveDir: root },
    bundle: true,
    platform: 'node',
    outfile,
    logLevel: 'silent',
    ...(options.format === 'esm' && { banner }),
    ...options,
  });
  return outfile;
}

it.each<[title: string, options: BuildOptions]>([
  ['an ES module', { format: 'esm' }],
  ['a CommonJS module', { format: 'cjs' }],
  ['a minified ES module', { format: 'esm', minify: true }],
  ['an ES module, with own conditions', { format: 'esm', conditions: ['production'] }],
])('a program that esbuild joins to one file, as %s, delivers its runs', async (_, options) => {
  const receiver = await startReceiver();
  const { code, stdout, stderr } = await runNode([await bundled(options)], { RUNSPAN_ENDPOINT: receiver.url });

  expect([code, stderr]).toEqual([0, '']);
  expect(JSON.parse(stdout)).toEqual([42, { ok: true, pending: 0 }, 2]);
  // A file of the application stays in stacks, although it contains the package.
  const failed = { name: 'fail', error: expect.stringMatching(/\n {4}at .*program\.[cm]js/) };
  expect(await receiver.runs()).toMatchObject([failed, { name: 'double', outputs: { outputs: 42 } }]);
});
