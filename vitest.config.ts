import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { defineConfig } from 'vitest/config';

/** Folders whose files leave nothing behind that another would see: they take turns in a process, whose start costs more than most of them. */
const SHARING = ['bench', 'cli', 'clients', 'http', 'package', 'receiver', 'viewer'].flatMap((folder) =>
  readdirSync(join('test', folder))
    .map((name) => `test/${folder}/${name}`)
    // Those that take the timers of the process have to do so before the library is loaded.
    .filter((path) => path.endsWith('.test.ts') && !readFileSync(path, 'utf8').includes('/virtual-timers.ts')),
);

const ELSEWHERE = ['test/peers/**', 'test/browser/**', '**/node_modules/**'];

export default defineConfig({
  // Node 20 and vite 7: standard decorators are lowered by esbuild when the target is below esnext.
  esbuild: { target: 'es2022' },
  test: {
    setupFiles: ['test/faults/set-up.ts'],
    // By default one core stays idle, which of two is half of them.
    maxWorkers: '100%',
    testTimeout: 30_000,
    hookTimeout: 60_000,
    projects: [
      { extends: true, test: { name: 'alone', include: ['test/**/*.test.ts'], exclude: [...ELSEWHERE, ...SHARING] } },
      { extends: true, test: { name: 'sharing', include: SHARING, isolate: false } },
    ],
  },
});
