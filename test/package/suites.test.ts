import { expect, it } from 'vitest';
import { filesUnder, read } from './repository.ts';

// A test file's name says which project of vitest.config.ts runs it. These checks find the files in the wrong project.

const files = filesUnder('test', '.test.ts')
  .filter((path) => !/^(browser|peers|runtimes)\//.test(path))
  .map((path) => ({ path, code: read(`test/${path}`) }));

const shared = files.filter(({ path }) => !/\.(isolated|program)\.test\.ts$/.test(path));

it('a test file that loads modules again or configures tracing does not share its worker', () => {
  const changesItsWorker =
    /\b(forget|fresh)Package\(|\bvi\.(resetModules|mock|doMock)\(|(?<!\.)\b(configure|shutdown)\(/;
  expect(shared.filter(({ code }) => changesItsWorker.test(code)).map(({ path }) => path)).toEqual([]);
});

it('a test file that shares its worker restores the timers that it replaces', () => {
  const restores = ({ code }: { readonly code: string }): boolean =>
    /(onTestFinished|afterEach)\(\(\) => void vi\.useRealTimers\(\)\)/.test(code);
  const replacing = shared.filter(({ code }) => /\bvi\.useFakeTimers\(/.test(code));
  expect(replacing.filter((file) => !restores(file)).map(({ path }) => path)).toEqual([]);
});

it('a test file in virtual time shares no worker with files in real time', () => {
  const usesVirtualTime = /support\/(virtual-timers|delivery|processes|scripted-service)\.ts'|stepped-server\.ts'/;
  // vitest.config.ts lists those of clients/, which also run with another transport.
  const real = files.filter(({ path }) => !/^clients\/|\.(isolated|program|virtual)\.test\.ts$/.test(path));
  expect(real.filter(({ code }) => usesVirtualTime.test(code)).map(({ path }) => path)).toEqual([]);
});
