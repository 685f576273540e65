import { defineConfig } from 'vitest/config';

// Real packages of others against ours, and the chat application, which is made of such: slower than the suite, and with installations of their own.
export default defineConfig({
  esbuild: { target: 'es2022' },
  test: {
    include: ['test/peers/**/*.test.ts', 'examples/chat/test/**/*.test.ts'],
    exclude: ['**/node_modules/**'],
    // By default one core stays idle, which of two is half of them.
    maxWorkers: '100%',
    // What is waited for is done by other processes, which have no more than their share of the machine.
    expect: { poll: { timeout: 10_000 } },
    testTimeout: 60_000,
    hookTimeout: 120_000,
  },
});
