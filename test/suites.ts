import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from './support/folders.ts';

/**
 * Test files whose time goes into the processes that they start: programs that exit, crash or are killed, the built command,
 * real hosts, examples. `npm run test:programs` runs them, `npm test` all others.
 */
export const programs: readonly string[] = [
  'test/cli/{agent-run,audit,backup,deployments,dev,doctor,spool,spool-send}.test.ts',
  'test/{copies,cost,earlier-versions,example-programs,examples,heap,preload,serverless}.test.ts',
  'test/export/{crash-loop,exit,exit-while-requests-hang,other-destinations,signals,spool-owner}.test.ts',
  'test/export/{spool-processes,takeover,unknown-runtime}.test.ts',
  'test/faults/kill-matrix.test.ts',
  'test/http/process-end.test.ts',
  'test/instrument/{outcome,sequence-program}.test.ts',
  'test/integrations/{ai-process,anthropic-rejections,openai-rejections}.test.ts',
  'test/package/{curl,docs-programs,tarball}.test.ts',
  'test/receiver/{langsmith,sqlite-crash}.test.ts',
  'test/security/{hidden-characters,host,paths}.test.ts',
];

/**
 * Test files that need a worker of their own: they wait for the garbage collector, or change something for the rest of the process.
 * All others share workers, since loading the sources for each file takes longer than its tests.
 */
export const isolated: readonly string[] = [
  'test/integrations/{anthropic-abandoned,langchain-steps,openai-abandoned}.test.ts',
  'test/otel/shutdown-time.test.ts',
];

/** Test files that run in virtual time. The library takes its timers when it is loaded, so these share workers of their own. */
export const virtualTime: readonly string[] = testFiles().filter((path) =>
  /support\/(virtual-timers|delivery|processes)\.ts'|stepped-server\.ts'/.test(readFileSync(join(root, path), 'utf8')),
);

function testFiles(): string[] {
  return readdirSync(join(root, 'test'), { recursive: true, encoding: 'utf8' })
    .map((path) => `test/${path.replaceAll('\\', '/')}`)
    .filter((path) => path.endsWith('.test.ts') && !/^test\/(peers|browser|mutants)\//.test(path));
}
