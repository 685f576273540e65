import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'vite';

const root = fileURLToPath(new URL('..', import.meta.url));

/** Builds the receiver's page into a folder, and returns the ids of the bundled modules. */
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
  return bundled.output.flatMap(({ moduleIds = [] }) => moduleIds);
}
