import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from './support/folders.ts';

/**
 * Test files that spend their time in child processes: programs that exit, crash or are killed, the built command, real
 * hosts, examples. `npm run test:programs` runs them, and `npm test` all others.
 */
export const programs: readonly string[] = [
  ...inFolder('test', 'copies', 'cost', 'example-programs', 'examples', 'heap', 'preload', 'serverless'),
  ...inFolder('test/cli', 'audit', 'backup', 'dev', 'dev-attach', 'doctor', 'lost-output', 'serve', 'store'),
  ...inFolder('test/delivery', 'crash-loop', 'exit', 'other-destinations', 'signals'),
  ...inFolder('test/delivery', 'shared-spool', 'unknown-runtime'),
  ...inFolder('test/faults', 'kill-matrix'),
  ...inFolder('test/http', 'process-end'),
  ...inFolder('test/instrument', 'outcome'),
  ...inFolder('test/integrations', 'called-programs', 'process', 'register', 'register-durability'),
  ...inFolder('test/langsmith', 'langsmith'),
  ...inFolder('test/package', 'curl', 'docs-programs', 'tarball'),
  ...inFolder('test/receiver', 'langsmith', 'removal-under-load', 'slow-queries', 'sqlite-crash'),
  ...inFolder('test/security', 'hidden-characters', 'host', 'paths'),
];

/**
 * Test files of the clients that also run with the `fetch` transport of browsers: broken connections, deadlines and
 * signals, and bodies that are read as a stream.
 */
export const bothTransports: readonly string[] = inFolder('test/clients', 'faults', 'run-stream');

/**
 * Test files that need their own worker: they load modules again, replace timers, configure tracing for the process,
 * count process listeners, wait for the garbage collector, change LangChain's storage, or expect that no entry point
 * was imported, so that tracing is off without an override. All others share workers, because loading the sources for
 * each file takes longer than its tests.
 */
export const isolated: readonly string[] = [
  ...filesWith(/\bforgetPackage\(|\bvi\.(resetModules|mock|doMock|useFakeTimers)\(|(?<!\.)\b(configure|shutdown)\(/),
  ...inFolder('test', 'exporters'),
  ...inFolder('test/instrument', 'off-call', 'traceable', 'transparency'),
  ...inFolder('test/integrations', 'abandoned', 'ai-transparency', 'missed-calls', 'propagation'),
  // Imports `runspan/register`, which then changes `node:http`.
  ...inFolder('test/integrations', 'requests'),
  ...inFolder('test/langsmith', 'entry'),
  ...inFolder('test/otel', 'run-propagator', 'time-limits'),
  // Imports `runspan/register`, which then records `fetch`.
  ...inFolder('test/package', 'bundles'),
  ...inFolder('test/run', 'propagation', 'run', 'run-changes', 'run-hostile'),
  ...inFolder('test/testing', 'record-runs'),
];

/**
 * Test files that run in virtual time. The library captures its timers when it is loaded, so these files have their own
 * workers.
 */
export const virtualTime: readonly string[] = filesWith(
  /support\/(virtual-timers|delivery|processes|scripted-service)\.ts'|stepped-server\.ts'/,
).filter((path) => !isolated.includes(path));

function inFolder(folder: string, ...names: readonly string[]): string[] {
  return names.map((name) => `${folder}/${name}.test.ts`);
}

/**
 * Returns the test files whose text matches. Does not read folders of other configurations, whose installed packages
 * are large.
 */
function filesWith(pattern: RegExp): string[] {
  const others = ['browser', 'fixtures', 'mutants', 'peers', 'runtimes'];
  return readdirSync(join(root, 'test'), { withFileTypes: true })
    .filter((entry) => !others.includes(entry.name))
    .flatMap((entry) => (entry.isDirectory() ? filesIn(entry.name) : [entry.name]))
    .map((path) => `test/${path.replaceAll('\\', '/')}`)
    .filter((path) => path.endsWith('.test.ts') && !programs.includes(path))
    .filter((path) => pattern.test(readFileSync(join(root, path), 'utf8')));
}

function filesIn(folder: string): string[] {
  return readdirSync(join(root, 'test', folder), { recursive: true, encoding: 'utf8' }).map((path) =>
    join(folder, path),
  );
}
