import { defineConfig } from 'vitest/config';

export default defineConfig({
  // Node 20 does not support decorators.
  esbuild: { target: 'es2022' },
  test: {
    include: ['test/**/*.test.ts'],
    testTimeout: 60_000,
    hookTimeout: 120_000,
  },
});
