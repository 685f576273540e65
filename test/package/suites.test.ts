import { expect, it } from 'vitest';
import { filesUnder, read } from './repository.ts';

// A test file's name says which project of vitest.config.ts runs it. These checks find the files in the wrong project.

const files = filesUnder('test', '.test.ts')
  .filter((path) => !/^(browser|peers|runtimes)\//.test(path))
  .map((path) => ({ path, code: read(`test/${path}`) }));

it('a test file that loads modules again, replaces timers or configures tracing does not share its worker', () => {
  const changesItsWorker =
    /\bforgetPackage\(|\bvi\.(resetModules|mock|doMock|useFakeTimers)\(|(?<!\.)\b(configure|shutdown)\(/;
  const shared = files.filter(({ path }) => !/\.(isolated|program)\.test\.ts$/.test(path));
  expect(shared.filter(({ code }) => changesItsWorker.test(code)).map(({ path }) => path)).toEqual([]);
});

it('a test file in virtual time shares no worker with files in real time', () => {
  const usesVirtualTime = /support\/(virtual-timers|delivery|processes|scripted-service)\.ts'|stepped-server\.ts'/;
  const real = files.filter(({ path }) => !/\.(isolated|program|virtual)\.test\.ts$/.test(path));
  expect(real.filter(({ code }) => usesVirtualTime.test(code)).map(({ path }) => path)).toEqual([
    'clients/agent-server-faults.test.ts',
    'clients/faults.test.ts',
    'clients/thread-feed.test.ts',
  ]);
});
