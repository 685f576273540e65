import { defineConfig } from 'vitest/config';
import { alias } from './test/support/folders.ts';

// The page in Chromium, one for all tests, against real receivers. It is the built page: `npm run test:browser` builds it.
export default defineConfig({
  esbuild: { target: 'es2022' },
  resolve: { alias },
  test: {
    include: ['test/browser/**/*.test.ts'],
    // Loading the receiver for each file takes longer than some tests.
    isolate: false,
    globalSetup: ['test/browser/browser-server.ts'],
    // By default one core stays idle, which of two is half of them.
    maxWorkers: '100%',
    // What is waited for is done by other processes, which have no more than their share of the machine.
    expect: { poll: { timeout: 10_000 } },
    testTimeout: 60_000,
    hookTimeout: 60_000,
  },
});
