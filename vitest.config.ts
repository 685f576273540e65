import { defineConfig } from 'vitest/config';

export default defineConfig({
  // Node 20 and vite 7: standard decorators are lowered by esbuild when the target is below esnext.
  esbuild: { target: 'es2022' },
  test: {
    include: ['test/**/*.test.ts'],
    exclude: ['test/peers/**', 'test/browser/**', '**/node_modules/**'],
    setupFiles: ['test/faults/set-up.ts'],
    // By default one core stays idle, which of two is half of them.
    maxWorkers: '100%',
    testTimeout: 30_000,
    hookTimeout: 60_000,
  },
});
