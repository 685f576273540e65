// The size of the source and of the package. A commit that raises a number of these tables says why in its body.
import { statSync } from 'node:fs';
import { join } from 'node:path';
import { build } from 'esbuild';
import { expect, it } from 'vitest';
import { root } from '../support/folders.ts';
import { filesUnder, read } from './repository.ts';

/** The folders of `src/`, with their TypeScript files and the lines of these files. `.` is for files outside folders. */
const SOURCE: Readonly<Record<string, readonly [files: number, lines: number]>> = {
  '.': [17, 495],
  base: [13, 490],
  cli: [52, 6_928],
  clients: [44, 6_199],
  config: [8, 1_369],
  delivery: [34, 5_545],
  http: [10, 1_011],
  instrument: [13, 2_253],
  integrations: [50, 6_136],
  langsmith: [13, 2_246],
  messages: [6, 519],
  otel: [55, 7_436],
  payload: [16, 2_999],
  platform: [9, 416],
  receiver: [145, 21_131],
  register: [18, 1_503],
  replay: [13, 1_349],
  run: [19, 3_529],
  testing: [9, 1_193],
  viewer: [74, 7_247],
};

/** Thousands of bytes, rounded up. */
const BUILT = {
  /** An application that imports all of `runspan`, bundled and minified, without undici. */
  bundle: 244,
  /** All files of `dist/`, which are the installed package without undici and a few texts. */
  dist: 4_232,
};

it('each source folder has at most the files and lines of the table', () => {
  const sizes = new Map<string, [files: number, lines: number]>();
  for (const path of [...filesUnder('src', '.ts'), ...filesUnder('src', '.tsx')]) {
    const folder = path.includes('/') ? path.slice(0, path.indexOf('/')) : '.';
    const [files, lines] = sizes.get(folder) ?? [0, 0];
    sizes.set(folder, [files + 1, lines + read(`src/${path}`).split('\n').length - 1]);
  }
  const larger = [...sizes].filter(([folder, [files, lines]]) => {
    const [filesMax, linesMax] = SOURCE[folder] ?? [0, 0];
    return files > filesMax || lines > linesMax;
  });
  expect(larger).toEqual([]);
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
