import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'vite';

const root = fileURLToPath(new URL('..', import.meta.url));

/** Builds the page of the receiver into a folder, with the licences of what it brings along. */
export async function buildPage(folder) {
  const bundled = await build({
    configFile: false,
    root: join(root, 'src', 'viewer'),
    base: './',
    logLevel: 'warn',
    esbuild: { jsx: 'automatic', jsxImportSource: 'preact', legalComments: 'none' },
    build: {
      outDir: folder,
      emptyOutDir: false,
      target: 'es2022',
      modulePreload: { polyfill: false },
      assetsInlineLimit: 0,
      reportCompressedSize: false,
    },
  });
  writeFileSync(join(folder, 'LICENSES.txt'), licencesOf(bundled.output.flatMap(({ moduleIds = [] }) => moduleIds)));
}

/** The licences of the packages that these modules are of. */
function licencesOf(ids) {
  const packages = ids.map((id) => /^.*\/node_modules\/(?:@[^/]+\/)?[^/]+/.exec(id)?.[0]).filter(Boolean);
  const texts = [...new Set(packages)].sort().map((path) => {
    const file = ['LICENSE', 'LICENSE.md'].map((name) => join(path, name)).find(existsSync);
    return `${relative(join(root, 'node_modules'), path)}\n\n${readFileSync(file, 'utf8').trim()}\n`;
  });
  return texts.join(`\n${'-'.repeat(80)}\n\n`);
}
