import { defineConfig } from 'vitest/config';
import { alias } from '../support/folders.ts';

const given = process.env.MUTANT_TESTS;

/** The tests that have to notice a mutant. */
export default defineConfig({
  esbuild: { target: 'es2022' },
  resolve: { alias },
  test: {
    include: given ? given.split(',') : ['test/{delivery,payload,run}/**/*.test.ts'],
    exclude: ['**/node_modules/**', '**/*-fuzz.test.ts'],
    env: { FUZZ_CASES: '50' },
    testTimeout: 10_000,
  },
});
