import { createRequire } from 'node:module';

const require = createRequire(import.meta.url);

/** The source files that are mutated by default. */
const mutated = [
  'src/payload/redaction/redact.ts',
  'src/payload/serialize.ts',
  'src/delivery/exporter.ts',
  'src/delivery/wire/outcome.ts',
];

export default {
  mutate: mutated,
  testRunner: 'vitest',
  plugins: [require.resolve('@stryker-mutator/vitest-runner')],
  vitest: { configFile: 'vitest.config.ts' },
  // Each test file runs once without a mutant. Each mutant then runs only the tests that cover it.
  coverageAnalysis: 'perTest',
  ignorePatterns: ['.ci', 'api', 'bench', 'dist', 'docs', 'examples', 'test/browser', 'test/peers'],
  ignoreStatic: true,
  // Vitest does not check types.
  disableTypeChecks: false,
  // Stryker rewrites paths in this file with TypeScript's old compiler API, and without the file does nothing.
  tsconfigFile: 'none',
  timeoutMS: 10_000,
  allowConsoleColors: false,
  reporters: ['clear-text', 'progress-append-only'],
  clearTextReporter: { allowColor: false, logTests: false, reportTests: false, reportScoreTable: true },
};
