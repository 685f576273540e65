import { availableParallelism } from 'node:os';
import { defineConfig } from 'vitest/config';
import { alias } from './test/support/folders.ts';

// Tests with real packages of other projects, and the tests of the chat application.
export default defineConfig({
  esbuild: { target: 'es2022' },
  resolve: { alias },
  test: {
    include: ['test/peers/**/*.test.ts', 'examples/chat/test/**/*.test.ts'],
    exclude: ['**/node_modules/**'],
    // Most files wait for a process, so one more worker keeps all cores busy.
    maxWorkers: availableParallelism() + 1,
    // The other processes share the cores.
    expect: { poll: { timeout: 10_000 } },
    testTimeout: 120_000,
    hookTimeout: 120_000,
  },
});
