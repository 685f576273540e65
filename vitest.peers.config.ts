import { availableParallelism } from 'node:os';
import { defineConfig } from 'vitest/config';

// Real packages of others against ours, and the chat application, which is made of such: slower than the suite, and with installations of their own.
// Tests of parts of the chat share workers, since loading the sources for each file takes longer than its tests.
const parts = ['agent', 'documents', 'http', 'page', 'protocol', 'tracing'].map(
  (part) => `examples/chat/test/${part}/**/*.test.ts`,
);

export default defineConfig({
  esbuild: { target: 'es2022' },
  test: {
    projects: [
      { extends: true, test: { name: 'parts', include: parts, isolate: false } },
      {
        extends: true,
        test: {
          name: 'programs',
          include: ['test/peers/**/*.test.ts', 'examples/chat/test/**/*.test.ts'],
          exclude: ['**/node_modules/**', ...parts],
        },
      },
    ],
    // Most files wait for a process, so that a worker more than there are cores keeps these busy.
    maxWorkers: availableParallelism() + 1,
    // What is waited for is done by other processes, which have no more than their share of the machine.
    expect: { poll: { timeout: 10_000 } },
    testTimeout: 60_000,
    hookTimeout: 120_000,
  },
});
