import { defineConfig } from 'vitest/config';
import { alias } from './test/support/folders.ts';

// Tests of the built package on other runtimes than Node.
export default defineConfig({
  esbuild: { target: 'es2022' },
  resolve: { alias },
  test: {
    include: ['test/runtimes/*.test.ts'],
    testTimeout: 60_000,
    hookTimeout: 60_000,
  },
});
