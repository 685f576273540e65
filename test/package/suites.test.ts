import fc from 'fast-check';
import { expect, it, vi } from 'vitest';
import { seed } from '../support/campaign.ts';
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

it('a test file in virtual time shares no worker with files in real time', () => {
  const usesVirtualTime = /support\/(virtual-timers|delivery|processes|scripted-service)\.ts'|stepped-server\.ts'/;
  // vitest.config.ts lists those of clients/, which also run with another transport.
  const real = files.filter(({ path }) => !/^clients\/|\.(isolated|program|virtual)\.test\.ts$/.test(path));
  expect(real.filter(({ code }) => usesVirtualTime.test(code)).map(({ path }) => path)).toEqual([]);
});

it.each([1, 2])('what `vi` replaces in a test is restored before the next one: %i', () => {
  const replaced = [process.env.STUBBED, 'stubbed' in globalThis, vi.isFakeTimers(), vi.isMockFunction(Date.parse)];
  expect(replaced).toEqual([undefined, false, false, false]);
  vi.stubEnv('STUBBED', 'yes')
    .stubGlobal('stubbed', true)
    .useFakeTimers({ toFake: ['setTimeout'] });
  vi.spyOn(Date, 'parse');
});

it('the cases of a test file follow from its name', () => {
  expect(fc.readConfigureGlobal()?.seed).toBe(seed());
  vi.stubEnv('CAMPAIGN_SEED', undefined);
  expect(seed()).toBe(994_739);
});
