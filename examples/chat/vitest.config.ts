import { defineConfig } from 'vitest/config';

// Of what is built, and of the sources. Some start PostgreSQL and Redis.
export default defineConfig({
  // Decorators are made into what Node 20 can read where the target is one that has none.
  esbuild: { target: 'es2022' },
  test: {
    include: ['test/**/*.test.ts'],
    testTimeout: 60_000,
    hookTimeout: 120_000,
  },
});
