import { join } from 'node:path';
import { beforeEach, expect, it, vi } from 'vitest';
import { forwardedSignal } from '#src/cli/dev/child.ts';
import { environmentFor, waitForIdle } from '#src/cli/dev/traced-child.ts';
import { DEFAULT_SCOPE, MemoryStore } from '#src/receiver.ts';
import { makeRun } from '../support/records.ts';
import { testFolder } from '../support/test-folder.ts';

beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] }));

const OFTEN = [200, 400, 600, 800, 1_000, 1_200, 1_400, 1_600];

it.each<[number[], number]>([
  [[], 300],
  [[299], 599],
  [[...OFTEN, 1_699], 1_999],
  [[...OFTEN, 1_700], 2_000],
  [[...OFTEN, 1_800, 1_999], 2_000],
])('with records after %j ms, the wait for an idle store takes %i ms', async (arrivals, endMs) => {
  const store = new MemoryStore();
  const { id, ...fields } = makeRun('1', 'ask');
  const done = vi.fn();
  void waitForIdle(store).then(done);
  let nowMs = 0;
  for (const atMs of arrivals) {
    await vi.advanceTimersByTimeAsync(atMs - nowMs);
    await store.apply(DEFAULT_SCOPE, [{ kind: 'post', id, fields, attachments: [] }]);
    nowMs = atMs;
  }
  await vi.advanceTimersByTimeAsync(endMs - 1 - nowMs);
  expect(done).not.toHaveBeenCalled();
  await vi.advanceTimersByTimeAsync(1);
  expect(done).toHaveBeenCalledOnce();
  expect(vi.getTimerCount()).toBe(0);
});

const ENDPOINT = 'http://127.0.0.1:4777';

it.each<[Record<string, string>, string | undefined]>([
  [{}, 'true'],
  [{ LANGSMITH_TRACING: 'yes', LANGCHAIN_TRACING_V2: 'true' }, 'true'],
  [{ LANGSMITH_TRACING: 'false' }, 'false'],
  [{ LANGSMITH_TRACING: ' False ' }, ' False '],
  [{ LANGCHAIN_TRACING_V2: 'false' }, undefined],
  [{ LANGSMITH_TRACING_V2: 'false' }, undefined],
  [{ LANGCHAIN_TRACING: 'false' }, undefined],
])('the environment of a command turns the tracing of langsmith on unless it is turned off: %j', (given, expected) => {
  for (const name of ['LANGSMITH_TRACING', 'LANGSMITH_TRACING_V2', 'LANGCHAIN_TRACING', 'LANGCHAIN_TRACING_V2']) {
    vi.stubEnv(name, given[name]);
  }
  vi.stubEnv('RUNSPAN_DEV', '{"setLive":true}');
  const { LANGSMITH_TRACING, RUNSPAN_DEV = '', ...others } = environmentFor(ENDPOINT, { program: 'program' });
  expect(LANGSMITH_TRACING).toBe(expected);
  expect(JSON.parse(RUNSPAN_DEV)).toEqual({ startDelayMs: 250, exchanges: true, setLive: true, program: 'program' });
  expect(others).toMatchObject({
    RUNSPAN_ENDPOINT: ENDPOINT,
    RUNSPAN_TRACING: 'true',
    RUNSPAN_PROTOCOL: 'runs',
    LANGSMITH_ENDPOINT: ENDPOINT,
  });
});

/** Returns `LANGSMITH_PROJECT` of a program that `runspan dev` starts in the folder `app/api` with these files around it. */
function projectOf(files: Record<string, string>, given: Record<string, string> = {}): string | undefined {
  const others = Object.entries(files).map(([name, text]) => [
    join('app/api', name === 'package.json' ? '../..' : '', name),
    text,
  ]);
  const folder = testFolder({ 'package.json': '{"name":"root"}', 'app/api/.keep': '', ...Object.fromEntries(others) });
  vi.spyOn(process, 'cwd').mockReturnValue(join(folder, 'app/api'));
  for (const name of ['RUNSPAN_PROJECT', 'LANGSMITH_PROJECT', 'LANGCHAIN_PROJECT']) vi.stubEnv(name, given[name]);
  return environmentFor(ENDPOINT, { program: 'program' }).LANGSMITH_PROJECT;
}

const named = (name: unknown): string => JSON.stringify({ name });

it.each<[string, Record<string, string>]>([
  ['api', { './package.json': named('api'), '../package.json': named('app') }],
  ['@shop/app', { '../package.json': `\ufeff${named('@shop/app')}` }],
  ['root', {}],
  ['root', { './package.json': '{"name":', '../package.json': '{"type":"module"}' }],
  ['root', { './package.json': named('a\u0000b'), '../package.json': named('') }],
  ['root', { './package.json': 'null', '../package.json': named(7) }],
  ['n'.repeat(214), { './package.json': named('n'.repeat(214)) }],
  ['root', { './package.json': named('n'.repeat(215)) }],
  ['from file', { '.env': 'LANGSMITH_PROJECT="from file"' }],
  [
    'local',
    { '.env': 'RUNSPAN_PROJECT=shared', '.env.local': 'RUNSPAN_PROJECT=local', './package.json': named('api') },
  ],
])('the project of a program is %s with the files %j', (project, files) => {
  expect(projectOf(files)).toBe(project);
});

it.each<[string, Record<string, string>]>([
  ['ours', { RUNSPAN_PROJECT: 'ours', LANGSMITH_PROJECT: 'theirs' }],
  ['theirs', { RUNSPAN_PROJECT: ' ', LANGSMITH_PROJECT: 'theirs', LANGCHAIN_PROJECT: 'older' }],
  ['older', { LANGCHAIN_PROJECT: 'older' }],
])('the project of a program is %s with the variables %j', (project, given) => {
  expect(projectOf({ '.env': 'RUNSPAN_PROJECT=file' }, given)).toBe(project);
});

type Signals = readonly (NodeJS.Signals | undefined)[];

it.each<[NodeJS.Signals, string, boolean, Signals]>([
  ['SIGINT', 'in a terminal', true, [undefined, 'SIGINT', 'SIGKILL', 'SIGKILL']],
  ['SIGHUP', 'in a terminal', true, [undefined, 'SIGHUP', 'SIGKILL', 'SIGKILL']],
  ['SIGTERM', 'in a terminal', true, ['SIGTERM', 'SIGTERM', 'SIGKILL', 'SIGKILL']],
  ['SIGINT', 'without a terminal', false, ['SIGINT', 'SIGINT', 'SIGKILL', 'SIGKILL']],
  ['SIGHUP', 'without a terminal', false, ['SIGHUP', 'SIGHUP', 'SIGKILL', 'SIGKILL']],
])('%s %s is forwarded unless the command has received it, and the third signal kills', (signal, _, isTty, sent) => {
  expect(sent.map((_, index) => forwardedSignal(signal, index + 1, isTty))).toEqual(sent);
});

it.each<[Record<string, string>, string | undefined, string]>([
  [{}, undefined, 'program'],
  [{ RUNSPAN_TRACING: 'false', LANGSMITH_API_KEY: 'mine', LANGSMITH_RUNS_ENDPOINTS: '{}' }, undefined, 'mine'],
  [{ RUNSPAN_RECEIVER_KEY: 'sesame' }, 'sesame', 'sesame'],
])('the environment of a command with %j has the key %s', (given, key, langsmithKey) => {
  for (const name of ['LANGSMITH_API_KEY', 'RUNSPAN_API_KEY']) vi.stubEnv(name, given[name]);
  for (const [name, value] of Object.entries(given)) vi.stubEnv(name, value);
  const environment = environmentFor(ENDPOINT, { program: 'program' }, given.RUNSPAN_RECEIVER_KEY);
  expect(environment.RUNSPAN_API_KEY).toBe(key);
  expect(environment).toMatchObject({ RUNSPAN_TRACING: 'true', LANGSMITH_API_KEY: langsmithKey });
  expect(environment.LANGSMITH_RUNS_ENDPOINTS).toBeUndefined();
});
