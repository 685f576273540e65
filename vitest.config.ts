import { configDefaults, defineConfig } from 'vitest/config';
import { programs, sharedWorker } from './test/suites.ts';

const elsewhere = [...configDefaults.exclude, 'test/peers/**', 'test/browser/**'];

export default defineConfig({
  // Node 20 and vite 7: standard decorators are lowered by esbuild when the target is below esnext.
  esbuild: { target: 'es2022' },
  test: {
    // The default leaves one core idle: half of a machine with two.
    maxWorkers: '100%',
    testTimeout: 30_000,
    hookTimeout: 60_000,
    env: { FUZZ_CASES: process.env.FUZZ_CASES ?? '300' },
    projects: [
      {
        extends: true,
        test: { name: 'shared', include: [...sharedWorker], exclude: [...elsewhere, ...programs], isolate: false },
      },
      {
        extends: true,
        test: {
          name: 'isolated',
          include: ['test/**/*.test.ts'],
          exclude: [...elsewhere, ...programs, ...sharedWorker],
        },
      },
      { extends: true, test: { name: 'programs', include: [...programs], exclude: elsewhere } },
    ],
  },
});
