// The size of the source, of the tests and of the package. These sums only fall. A change that raises one first finds what
// can go, and says in its body why the rest is needed.
import { statSync } from 'node:fs';
import { join } from 'node:path';
import { build, type Metafile } from 'esbuild';
import { expect, it } from 'vitest';
import { root } from '../support/folders.ts';
import { filesUnder, read } from './repository.ts';

/** Lines of the TypeScript files in `src/`, and of the TypeScript and JavaScript files in `test/`. */
const LINES = { src: 87_388, test: 98_162 };

/** Thousands of bytes, rounded up. */
const BUILT = {
  /** An application that imports all of `runspan`, bundled and minified, without undici. */
  bundle: 285,
  /** All files of `dist/`, which are the installed package without undici and a few texts. */
  dist: 4_285,
};

/** Thousands of bytes of `src/services/` that an entry loads at once: the page the readers of messages, `openai` its formats. */
const SERVICES = { 'src/index.ts': 0, 'src/openai.ts': 16, 'src/viewer/main.tsx': 8 };

it('the source and the tests have at most the lines of the table', () => {
  const linesOf = (folder: string, ending: RegExp): number =>
    filesUnder(folder, '')
      .filter((path) => ending.test(path))
      .reduce((lines, path) => lines + read(`${folder}/${path}`).split('\n').length - 1, 0);
  expect(linesOf('src', /\.tsx?$/)).toBeLessThanOrEqual(LINES.src);
  expect(linesOf('test', /\.[cm]?[jt]sx?$/)).toBeLessThanOrEqual(LINES.test);
});

it('a bundle of the package and the built files have at most the bytes of the table', async () => {
  const { outputFiles } = await build({
    stdin: { contents: `export * from 'runspan'`, resolveDir: root },
    bundle: true,
    platform: 'node',
    format: 'esm',
    external: ['undici'],
    minify: true,
    write: false,
    logLevel: 'silent',
  });
  const bundle = outputFiles.reduce((bytes, { contents }) => bytes + contents.length, 0);
  const dist = filesUnder('dist', '').reduce((bytes, path) => bytes + statSync(join(root, 'dist', path)).size, 0);
  const kilobytes = { bundle: Math.ceil(bundle / 1_000), dist: Math.ceil(dist / 1_000) };
  expect(kilobytes.bundle).toBeLessThanOrEqual(BUILT.bundle);
  expect(kilobytes.dist).toBeLessThanOrEqual(BUILT.dist);
});

/** Returns the size of the readers of services in an output and in the outputs that it imports statically. */
function bytesOfServices({ outputs }: Metafile, entry: string): number {
  const reached = new Set<string>();
  const visit = (path: string): void => {
    const output = outputs[path];
    if (output === undefined || reached.has(path)) return;
    reached.add(path);
    for (const { path: imported, kind } of output.imports) if (kind === 'import-statement') visit(imported);
  };
  visit(Object.keys(outputs).find((path) => outputs[path]?.entryPoint === entry) ?? entry);
  const inputs = [...reached].flatMap((path) => Object.entries(outputs[path]?.inputs ?? {}));
  const ofServices = inputs.filter(([path]) => path.startsWith('src/services/'));
  return ofServices.reduce((bytes, [, { bytesInOutput }]) => bytes + bytesInOutput, 0);
}

it.each(Object.entries(SERVICES))('%s loads at most %s kB of readers of services', async (entry, limit) => {
  const { metafile } = await build({
    ...{ absWorkingDir: root, entryPoints: [entry], outdir: 'out', write: false, metafile: true, logLevel: 'silent' },
    ...{ bundle: true, splitting: true, platform: 'node', format: 'esm', minify: true, packages: 'external' },
    loader: { '.css': 'empty', '.svg': 'empty' },
  });
  expect(Object.keys(metafile.inputs)).toContain(entry);
  expect(Math.ceil(bytesOfServices(metafile, entry) / 1_000)).toBeLessThanOrEqual(limit);
});
