import { defineConfig } from 'vitest/config';

// Real packages of others against ours, and the chat application, which is made of such: slower than the suite, and with installations of their own.
export default defineConfig({
  esbuild: { target: 'es2022' },
  test: {
    include: ['test/peers/**/*.test.ts', 'examples/chat/test/**/*.test.ts'],
    exclude: ['**/node_modules/**'],
    testTimeout: 60_000,
    hookTimeout: 120_000,
  },
});
