import { fileURLToPath } from 'node:url';
import { configDefaults, defineConfig } from 'vitest/config';
import { bothTransports, isolated, programs, virtualTime } from './test/suites.ts';
import { alias } from './test/support/folders.ts';

const elsewhere = [...configDefaults.exclude, 'test/peers/**', 'test/browser/**', 'test/runtimes/**'];

export default defineConfig({
  // Node 20 and vite 7: standard decorators are lowered by esbuild when the target is below esnext.
  esbuild: { target: 'es2022' },
  resolve: { alias },
  test: {
    // The default leaves one core idle: half of a machine with two.
    maxWorkers: '100%',
    testTimeout: 30_000,
    hookTimeout: 60_000,
    env: { FUZZ_CASES: process.env.FUZZ_CASES ?? '300' },
    projects: [
      {
        extends: true,
        test: {
          name: 'units',
          include: ['test/**/*.test.ts'],
          exclude: [...elsewhere, ...programs, ...isolated, ...virtualTime],
          isolate: false,
          setupFiles: ['test/support/tracing-off.ts'],
        },
      },
      {
        extends: true,
        test: {
          name: 'virtual-time',
          include: [...virtualTime],
          exclude: [...elsewhere, ...programs, ...isolated],
          isolate: false,
          setupFiles: ['test/support/virtual-timers.ts'],
        },
      },
      {
        extends: true,
        plugins: [
          {
            name: 'fetch-transport',
            enforce: 'pre',
            resolveId: (id) =>
              id.endsWith('/http/create-client.ts')
                ? fileURLToPath(new URL('src/http/create-client.edge.ts', import.meta.url))
                : undefined,
          },
        ],
        test: {
          name: 'fetch',
          include: [...bothTransports],
          isolate: false,
          setupFiles: ['test/support/virtual-timers.ts'],
        },
      },
      { extends: true, test: { name: 'isolated', include: [...isolated], exclude: elsewhere } },
      { extends: true, test: { name: 'programs', include: [...programs], exclude: elsewhere } },
    ],
  },
});
