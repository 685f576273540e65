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
 * Test files that share a worker and its modules with others of their folder: importing the sources for each file costs more
 * than the tests. They leave no global state behind: environment, clock, log level and sink are as before when a test ends.
 */
export const sharedWorker: readonly string[] = [
  'test/bench/**/*.test.ts',
  'test/clients/**/*.test.ts',
  'test/integrations/**/*.test.ts',
  'test/otel/**/*.test.ts',
  'test/receiver/**/*.test.ts',
  'test/viewer/**/*.test.ts',
];
