import { defineConfig } from 'vitest/config';
import { alias } from './test/support/folders.ts';

// The properties of the suite that have a count of cases, with many more of them. FUZZ_SEED makes a run the same again.
export default defineConfig({
  esbuild: { target: 'es2022' },
  resolve: { alias },
  test: {
    include: ['test/**/*-fuzz.test.ts'],
    exclude: ['**/node_modules/**'],
    env: { FUZZ_CASES: process.env.FUZZ_CASES ?? '100000' },
    testTimeout: 600_000,
  },
});
