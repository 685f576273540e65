import { expect, it, vi } from 'vitest';
import { hookVariables } from '#src/cli/dev/hook-variables.ts';
import { isUnrecordedProgram } from '#src/register/unrecorded-program.ts';

const URL = 'http://127.0.0.1:4777';
const OTLP = {
  OTEL_EXPORTER_OTLP_ENDPOINT: URL,
  OTEL_EXPORTER_OTLP_PROTOCOL: 'http/protobuf',
  OTEL_EXPORTER_OTLP_HEADERS: 'x-runspan-program=id',
  OTEL_METRICS_EXPORTER: 'none',
};
const NAMES = [
  'NODE_OPTIONS',
  'OTEL_EXPORTER_OTLP_TRACES_ENDPOINT',
  'OTEL_EXPORTER_OTLP_HEADERS',
  'RUNSPAN_PROJECT',
  'LANGSMITH_PROJECT',
  ...Object.keys(OTLP),
];

/** The variables for a command, if the environment has those of `given`. */
async function variablesOf(given: Readonly<Record<string, string>>, apiKey?: string): Promise<Record<string, string>> {
  for (const name of NAMES) vi.stubEnv(name, given[name]);
  const warn = vi.fn();
  const variables = await hookVariables('python3', URL, apiKey, 'id', warn);
  expect(warn).not.toHaveBeenCalled();
  return variables;
}

it.each([
  ['', undefined],
  [' --max-old-space-size=4096', '--max-old-space-size=4096'],
  [' --require "/a b/c.cjs"  --import=./d.mjs', '--require "/a b/c.cjs"  --import=./d.mjs'],
])('the hook comes before the options%s', async (rest, existing) => {
  const { NODE_OPTIONS = '' } = await variablesOf(existing === undefined ? {} : { NODE_OPTIONS: existing });
  expect(NODE_OPTIONS).toMatch(/^--import=file:\/\/\/\S+\/register\.js/);
  expect(NODE_OPTIONS.replace(/^\S+/, '')).toBe(rest);
});

it('OpenTelemetry exporters send traces and logs, but no metrics, to the receiver', async () => {
  expect(await variablesOf({})).toEqual({ ...OTLP, NODE_OPTIONS: expect.any(String) });
  const withKey = { OTEL_EXPORTER_OTLP_HEADERS: 'x-api-key=a%3Db%2Cc,x-runspan-program=id' };
  expect(await variablesOf({}, 'a=b,c')).toMatchObject(withKey);
  const own = { OTEL_EXPORTER_OTLP_HEADERS: 'x-team=a' };
  expect(await variablesOf(own)).toMatchObject({ OTEL_EXPORTER_OTLP_HEADERS: 'x-team=a,x-runspan-program=id' });
  expect(await variablesOf({ OTEL_METRICS_EXPORTER: 'console' })).toMatchObject({ OTEL_METRICS_EXPORTER: 'console' });
});

it.each<[Record<string, string>, string | undefined, string]>([
  [{}, undefined, 'x-runspan-program=id'],
  [
    { RUNSPAN_PROJECT: 'a shop, b', LANGSMITH_PROJECT: 'b' },
    undefined,
    'x-runspan-program=id,langsmith-project=a%20shop%2C%20b',
  ],
  [
    { LANGSMITH_PROJECT: 'b', OTEL_EXPORTER_OTLP_HEADERS: 'a=1' },
    'key',
    'a=1,x-api-key=key,x-runspan-program=id,langsmith-project=b',
  ],
  [{ RUNSPAN_PROJECT: '商店' }, undefined, 'x-runspan-program=id'],
])('OpenTelemetry exporters get the headers for %j and the key %s', async (given, apiKey, headers) => {
  expect((await variablesOf(given, apiKey)).OTEL_EXPORTER_OTLP_HEADERS).toBe(headers);
});

it.each(['OTEL_EXPORTER_OTLP_ENDPOINT', 'OTEL_EXPORTER_OTLP_TRACES_ENDPOINT'])(
  'OpenTelemetry exporters keep the endpoint in %s',
  async (name) => {
    expect(await variablesOf({ [name]: 'http://localhost:4318' }, 'key')).toEqual({ NODE_OPTIONS: expect.any(String) });
  },
);

it.each<[boolean, string | undefined]>([
  [true, '/usr/lib/node_modules/npm/bin/npm-cli.js'],
  [true, 'C:\\nodejs\\node_modules\\npm\\bin\\npx-cli.js'],
  [true, '/usr/bin/npm'],
  [true, '/home/ada/.cache/node/corepack/v1/pnpm/10.1.0/bin/pnpm.cjs'],
  [true, '/app/.yarn/releases/yarn-4.9.2.cjs'],
  [true, '/app/node_modules/@anthropic-ai/claude-agent-sdk/cli.js'],
  [true, '/usr/lib/node_modules/corepack/dist/corepack.js'],
  [false, '/app/npm/server.js'],
  [false, '/app/npm-report.js'],
  [false, '/app/node_modules/.bin/next'],
  [false, undefined],
])('it is %s that %s is never recorded', (expected, file) => {
  expect(isUnrecordedProgram(file)).toBe(expected);
});
