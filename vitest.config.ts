import { availableParallelism } from 'node:os';
import { fileURLToPath } from 'node:url';
import type { Plugin } from 'vite';
import { configDefaults, defineConfig, type TestProjectInlineConfiguration } from 'vitest/config';
import { alias } from './test/support/folders.ts';

/** Start child processes: programs that exit, crash or are killed, the built command, real hosts, examples. */
const programs = 'test/**/*.program.test.ts';

/**
 * Need their own worker: they load modules again, configure tracing for the process, count process listeners, wait for
 * the garbage collector, or expect that no entry point was imported.
 */
const isolated = 'test/**/*.isolated.test.ts';

/** Run in virtual time. The library reads its timers when it is loaded, so these files share no worker with others. */
const virtualTime = ['test/**/*.virtual.test.ts', 'test/clients/{agent-server-faults,faults}.test.ts'];

/** Also run with the `fetch` transport of browsers: broken connections, deadlines, signals and streamed bodies. */
const bothTransports = ['test/clients/{faults,run-stream}.test.ts'];

const otherSuites = ['test/browser/**', 'test/peers/**', 'test/runtimes/**'];

/** Test files for `npm run test:mutants`, separated by commas. Empty for the default ones. */
const mutantTests = process.env.MUTANT_TESTS;

const fetchTransport: Plugin = {
  name: 'fetch-transport',
  enforce: 'pre',
  resolveId: (id) =>
    id.endsWith('/http/create-client.ts')
      ? fileURLToPath(new URL('src/http/create-client.edge.ts', import.meta.url))
      : undefined,
};

/** The projects of `npx vitest run`, without `--project`. */
const usual: TestProjectInlineConfiguration[] = [
  {
    extends: true,
    test: {
      name: 'units',
      include: ['test/**/*.test.ts'],
      exclude: [...configDefaults.exclude, ...otherSuites, programs, isolated, ...virtualTime],
      // Loading the sources for each file takes longer than its tests.
      isolate: false,
      setupFiles: ['test/support/tracing-off.ts'],
    },
  },
  {
    extends: true,
    test: {
      name: 'virtual-time',
      include: virtualTime,
      isolate: false,
      setupFiles: ['test/support/virtual-timers.ts'],
    },
  },
  {
    extends: true,
    plugins: [fetchTransport],
    test: {
      name: 'fetch',
      include: bothTransports,
      isolate: false,
      setupFiles: ['test/support/virtual-timers.ts'],
    },
  },
  { extends: true, test: { name: 'isolated', include: [isolated] } },
  { extends: true, test: { name: 'programs', include: [programs], testTimeout: 90_000 } },
];

const others: TestProjectInlineConfiguration[] = [
  { extends: true, test: { name: 'faults', include: ['test/faults/**/*.campaign.ts'], testTimeout: 60_000 } },
  {
    extends: true,
    test: {
      name: 'peers',
      include: ['test/peers/**/*.test.ts', 'examples/chat/test/**/*.test.ts'],
      globalSetup: ['test/peers/clickhouse/server.ts'],
      // Most files wait for a process, so one more worker keeps all cores busy.
      maxWorkers: availableParallelism() + 1,
      // ClickHouse derives thousands of runs in steps, beside other processes.
      expect: { poll: { timeout: 100_000 } },
      testTimeout: 120_000,
      hookTimeout: 120_000,
    },
  },
  {
    extends: true,
    test: {
      name: 'browser',
      include: ['test/browser/**/*.test.ts'],
      isolate: false,
      globalSetup: ['test/browser/browser-server.ts'],
      testTimeout: 60_000,
    },
  },
  { extends: true, test: { name: 'runtimes', include: ['test/runtimes/*.test.ts'], testTimeout: 60_000 } },
];

const mutants: TestProjectInlineConfiguration = {
  extends: true,
  test: {
    name: 'mutants',
    include: mutantTests ? mutantTests.split(',') : ['test/{delivery,payload,run}/**/*.test.ts'],
    exclude: [...configDefaults.exclude, 'test/**/*-fuzz*.test.ts'],
    testTimeout: 10_000,
  },
};

function projects(): TestProjectInlineConfiguration[] {
  if (mutantTests !== undefined) return [mutants];
  return process.argv.some((arg) => arg.startsWith('--project')) ? [...usual, ...others] : usual;
}

export default defineConfig({
  // Node 20 does not support decorators. esbuild compiles them only for targets below esnext.
  esbuild: { target: 'es2022' },
  resolve: { alias },
  test: {
    // The default leaves one core idle, which is half of a machine with two cores.
    maxWorkers: '100%',
    testTimeout: 60_000,
    hookTimeout: 60_000,
    // A poll waits for an event, which other programs on the machine may delay.
    expect: { poll: { timeout: 30_000 } },
    // Vitest evaluates them for each test file, also where files share a worker.
    setupFiles: ['test/support/seeded.ts', 'test/support/restored.ts'],
    projects: projects(),
  },
});
