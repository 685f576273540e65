import { defineConfig } from 'vitest/config';
import { alias } from './test/support/folders.ts';

// `npm run test:faults -- kill` runs one campaign. `FAULT_ROUNDS` sets how often each case runs.
export default defineConfig({
  esbuild: { target: 'es2022' },
  resolve: { alias },
  test: {
    include: ['test/faults/**/*.campaign.ts'],
    exclude: ['**/node_modules/**'],
    testTimeout: 60_000,
  },
});
