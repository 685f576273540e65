import { defineConfig } from 'vitest/config';
import { alias } from './test/support/folders.ts';

// Campaigns, each by its name: `npm run test:faults -- kill`. FAULT_ROUNDS says how often each case is gone through.
export default defineConfig({
  esbuild: { target: 'es2022' },
  resolve: { alias },
  test: {
    include: ['test/faults/**/*.campaign.ts'],
    exclude: ['**/node_modules/**'],
    testTimeout: 60_000,
  },
});
