import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { diagnostics } from '#src/base/diagnostics.ts';
import { defaultLimits, defaultTuning } from '#src/config/limits.ts';
import { type ConfigureOptions, resolveSettings } from '#src/config/options.ts';
import { defaultRedaction, hideAll, redact } from '#src/payload/redaction/redact.ts';
import { environmentOf } from '../support/environment.ts';
import { root } from '../support/folders.ts';
import { polluted } from '../support/pollution.ts';

const ENDPOINT = 'http://127.0.0.1:4777';
let lines: string[] = [];

/** Settles options in an environment without other variables. Log lines go to `lines`. */
function resolve(options?: unknown, environment: Record<string, string> = {}) {
  environmentOf(environment);
  const log = (_: string, line: string): void => void lines.push(line);
  return resolveSettings((typeof options === 'object' && options ? { log, ...options } : options) as ConfigureOptions);
}

function withEndpoint(options: object, environment: Record<string, string> = {}) {
  return resolve({ endpoint: ENDPOINT, ...options }, environment);
}

beforeEach(() => {
  lines = [];
  diagnostics.forgetPlaces();
});
afterEach(() => diagnostics.setLog('warn'));

describe('tracing', () => {
  it('is off, without a log line, if neither an endpoint nor a key is set', () => {
    expect(resolve({})).toBeUndefined();
    expect(lines).toEqual([]);
  });

  it.each([
    [['false', 'FALSE', '0', 'off', 'no'], false],
    [['true', 'on', 'yes', '1'], true],
  ])('with RUNSPAN_TRACING=%j is on: %s', (values, isOn) => {
    for (const value of values) expect(withEndpoint({}, { RUNSPAN_TRACING: value }) !== undefined, value).toBe(isOn);
  });

  it('is off with the option `tracing: false`, whatever the environment sets', () => {
    expect(withEndpoint({ tracing: false }, { RUNSPAN_TRACING: 'true' })).toBeUndefined();
  });

  it('is on with RUNSPAN_PROTOCOL=otlp and no endpoint', () => {
    expect(resolve({}, { RUNSPAN_PROTOCOL: 'otlp' })?.endpoint.href).toBe('http://localhost:4318/v1/traces');
    expect(lines).toEqual([]);
  });

  it('is off with a key and no endpoint, and the log line contains RUNSPAN_ENDPOINT', () => {
    expect(resolve({ apiKey: 'sk-secret' })).toBeUndefined();
    expect(lines).toEqual([
      'configuration: tracing is off, because an API key is set without an endpoint; set RUNSPAN_ENDPOINT or `endpoint`.',
    ]);
  });

  it.each([
    ['a bare host', { endpoint: '127.0.0.1:4777' }, 'is not an http or https URL'],
    ['a word', { endpoint: 'nonsense' }, 'is not an http or https URL'],
    ['FTP', { endpoint: 'ftp://host' }, 'is not an http or https URL'],
    ['a password', { endpoint: 'http://user:sk-secret@host' }, 'contains a user or password'],
    ['a query', { endpoint: 'http://host/?key=sk-secret' }, 'has a query or fragment'],
    ['a line break in the key', { endpoint: ENDPOINT, apiKey: 'sk-\nsecret' }, 'that a header cannot contain'],
    ['a space in the key', { endpoint: ENDPOINT, apiKey: 'sk secret' }, 'that a header cannot contain'],
    ['a tab in the key', { endpoint: ENDPOINT, apiKey: 'sk\tsecret' }, 'that a header cannot contain'],
    ['U+007F in the key', { endpoint: ENDPOINT, apiKey: 'sk\u007fsecret' }, 'that a header cannot contain'],
    ['U+0080 in the key', { endpoint: ENDPOINT, apiKey: 'sk\u0080secret' }, 'that a header cannot contain'],
    ['an accent in the key', { endpoint: ENDPOINT, apiKey: 'sk-sécret' }, 'that a header cannot contain'],
    ['a long key', { endpoint: ENDPOINT, apiKey: 'k'.repeat(8193) }, 'has more than 8192 characters'],
  ])('is off with %s, and the log line contains the cause but no secret', (_, options, problem) => {
    expect(resolve(options)).toBeUndefined();
    expect(lines).toEqual([expect.stringContaining(problem)]);
    expect(lines[0]).not.toMatch(/s[eé]cret|kkkk/);
  });

  it.each([
    ['/runs', '/'],
    ['/runs/multipart', '/'],
    ['/api/v1/runs/', '/api/v1'],
    ['/api/runs/multipart', '/api'],
  ])('leaves the route %s out of the endpoint, with one line', (path, base) => {
    expect(resolve({ endpoint: ENDPOINT + path })?.endpoint.pathname).toBe(base);
    const used = ENDPOINT + base.replace(/^\/$/, '');
    expect(lines).toEqual([
      `configuration: the endpoint ends in the route of a request, which runspan appends itself; ${used} is used.`,
    ]);
  });

  it.each(['/truns', '/runs/x', '/v1/traces'])('keeps the path %s of the endpoint', (path) => {
    expect(resolve({ endpoint: ENDPOINT + path })?.endpoint.pathname).toBe(path);
    expect(lines).toEqual([]);
  });

  it('reports a variable with a misspelt name, but no variable of the application', () => {
    resolve({}, { RUNSPAN_ENDPONT: ENDPOINT, RUNSPAN_TRACNG: 'true', RUNSPAN_TEAM_ID: '1', RUNSPAN_LOG: 'warn' });
    expect(lines).toEqual([
      'configuration: RUNSPAN_ENDPONT is not a variable of runspan, but RUNSPAN_ENDPOINT is.',
      'configuration: RUNSPAN_TRACNG is not a variable of runspan, but RUNSPAN_TRACING is.',
    ]);
  });

  it.each(['!', '~'.repeat(8192)])('is on with the key %j, which is sent', (apiKey) => {
    expect(withEndpoint({ apiKey })?.headers['x-api-key']).toBe(apiKey);
  });

  it.each([['text'], [5], [null]])('does not throw with the options %j', (options) => {
    expect(resolve(options, { RUNSPAN_LOG: 'silent' })).toBeUndefined();
  });
});

describe('an option overrides RUNSPAN_…, which overrides LANGSMITH_…, which overrides the default', () => {
  const project = (name: string) => ({ capture: { project: name } });
  const origins = (...list: string[]) => ({ capture: { propagateTo: new Set(list) } });
  const keeping = (onError: boolean, slowMs: number) => ({ capture: { keep: { onError, slowMs, functions: [] } } });

  it.each<[object, Record<string, string>, object]>([
    [{ project: 'option' }, { RUNSPAN_PROJECT: 'ours' }, project('option')],
    [{}, { RUNSPAN_PROJECT: 'ours', LANGSMITH_PROJECT: 'theirs' }, project('ours')],
    [{}, { LANGSMITH_PROJECT: 'theirs' }, project('theirs')],
    [{}, { RUNSPAN_PROJECT: '' }, project('default')],
    [{}, { RUNSPAN_ENDPOINT: 'http://127.0.0.1:1' }, { endpoint: new URL(ENDPOINT) }],
    [{ endpoint: undefined }, { RUNSPAN_ENDPOINT: 'http://127.0.0.1:1' }, { endpoint: new URL('http://127.0.0.1:1') }],
    [{}, { RUNSPAN_PROPAGATE_TO: ' ' }, { capture: { propagateTo: undefined } }],
    [
      {},
      { RUNSPAN_PROPAGATE_TO: 'https://a.example:443, http://B.example:80/' },
      origins('https://a.example', 'http://b.example'),
    ],
    [
      { propagateTo: ['http://[::1]:8080'] },
      { RUNSPAN_PROPAGATE_TO: 'https://a.example' },
      origins('http://[::1]:8080'),
    ],
    [{ propagateTo: [] }, { RUNSPAN_PROPAGATE_TO: 'https://a.example' }, { capture: { propagateTo: undefined } }],
    [{}, { RUNSPAN_KEEP: 'error' }, keeping(true, Number.POSITIVE_INFINITY)],
    [{}, { RUNSPAN_KEEP: 'slow>1.5min, slow>2s' }, keeping(false, 2_000)],
    [{ keep: ['error', 'slow>500ms'] }, { RUNSPAN_KEEP: 'slow>1s' }, keeping(true, 500)],
    [{ keep: [] }, { RUNSPAN_KEEP: 'error' }, { capture: { keep: undefined } }],
    [{}, { RUNSPAN_HIDE_INPUTS: 'true' }, { capture: { hideInputs: true, hideOutputs: false } }],
    [
      {},
      { LANGSMITH_HIDE_OUTPUTS: 'true', RUNSPAN_HIDE_INPUTS: 'false' },
      { capture: { hideInputs: false, hideOutputs: true } },
    ],
  ])('%j, %j', (options, environment, expected) => {
    expect(withEndpoint(options, environment)).toMatchObject(expected);
    expect(lines).toEqual([]);
  });

  const both = { RUNSPAN_SAMPLE_RATE: '0', LANGSMITH_TRACING_SAMPLING_RATE: '0' };
  it.each<[object, Record<string, string>, boolean | undefined]>([
    [{}, both, false],
    [{}, { LANGSMITH_TRACING_SAMPLING_RATE: '0' }, false],
    [{}, { ...both, RUNSPAN_SAMPLE_RATE: '1' }, undefined],
    [{ sampleRate: 1 }, both, undefined],
    [{ sampler: () => true }, both, true],
  ])('sampling: %j, %j', (options, environment, isKept) => {
    const start = { traceId: '0195c0de-0000-7000-8000-000000000000', name: 'a', runType: 'chain', project: 'p' };
    expect(withEndpoint(options, environment)?.capture.sampling?.(start)).toBe(isKept === false ? 0 : isKept);
    expect(lines).toEqual([]);
  });
});

describe('LANGSMITH_RUNS_ENDPOINTS', () => {
  const [one, two] = ['https://one.test/api', 'https://two.test'];

  it.each<[string, string, string[], number]>([
    ['a list', `[{ "api_url": "${one}", "api_key": " k1 " }, { "api_url": "${two}", "api_key": "" }]`, [one, two], 0],
    ['an object', `{ "${one}": "k1", "${two}": "k2" }`, [one, two], 0],
    ['a list with invalid entries', `[null, { "api_url": "${one}", "api_key": "k1" }, {}]`, [one], 1],
    ['empty', '', [], 0],
    ['an empty list', '[]', [], 0],
    ['broken', `[{ "api_url": "${one}", "api_key": "sk-secret"`, [], 1],
    ['a number', '5', [], 1],
    ['without a key', `[{ "api_url": "${one}" }]`, [], 1],
    ['with an invalid URL', '{ "sk-secret": "key", "https://sk-secret@one.test": "key" }', [], 1],
    ['with a space in the key', `{ "${one}": "sk secret" }`, [], 1],
    ['with an invalid project', `[{ "api_url": "${one}", "api_key": "k1", "project_name": 5 }]`, [], 1],
    ['with an invalid `primary`', `[{ "api_url": "${one}", "api_key": "k1", "primary": "yes" }]`, [], 1],
  ])('that is %s names the services that are valid, and is logged if it is not', (_, value, urls, count) => {
    const variables = { LANGSMITH_TRACING: 'true', LANGSMITH_API_KEY: 'k0', LANGSMITH_RUNS_ENDPOINTS: value };
    const settings = resolve({}, variables);
    expect(settings?.capture.replication?.endpoints.map(({ apiUrl }) => apiUrl) ?? []).toEqual(urls);
    expect(settings?.endpoint.href).toBe(urls[0] ?? 'https://api.smith.langchain.com/');
    expect(settings?.headers['x-api-key']).toBe(urls[0] ? 'k1' : 'k0');
    expect(lines).toHaveLength(count);
    for (const line of lines) {
      expect(line).toMatch(/expected LANGSMITH_RUNS_ENDPOINTS .*; what is invalid is ignored\.$/);
      expect(line).not.toContain('secret');
    }
  });
});

it.each<[object, Record<string, string>, string]>([
  [{ propagateTo: 'https://a.example' }, {}, '`propagateTo`'],
  [{ propagateTo: ['https://a.example/path'] }, {}, '`propagateTo`'],
  [{ propagateTo: ['https://user:sk-secret@a.example'] }, {}, '`propagateTo`'],
  [{ propagateTo: ['a.example'] }, {}, '`propagateTo`'],
  [{ propagateTo: ['*'] }, {}, '`propagateTo`'],
  [{ propagateTo: ['ws://a.example'] }, {}, '`propagateTo`'],
  [{}, { RUNSPAN_PROPAGATE_TO: 'https://a.example,b.example' }, '`RUNSPAN_PROPAGATE_TO`'],
])('%j, %j propagates to no origin, and is logged', (options, environment, name) => {
  expect(withEndpoint(options, environment)?.capture.propagateTo).toBeUndefined();
  const expected = 'a list of origins such as https://search.example';
  const effect = name.includes('_') ? 'the default is used' : 'the option is ignored';
  expect(lines).toEqual([`configuration: expected ${name} to be ${expected}; ${effect}.`]);
});

it('a property of `Object.prototype` is not an option', () => {
  const properties = {
    tracing: false,
    sampleRate: 0,
    project: 'other',
    hideInputs: true,
    apiKey: 'k',
    limits: { queueRuns: 1 },
  };
  const expected = withEndpoint({});
  let settings: unknown;
  polluted(Object.prototype, properties, () => {
    settings = withEndpoint({});
  });
  expect(settings).toEqual(expected);
  expect(lines).toEqual([]);
});

describe('an invalid option is reported', () => {
  it('with its name, in one line each, and the others are used', () => {
    const keepAttributes = ['tenant', 'a*b'];
    const given = { samplerate: 1, lingerMs: 5, project: 5, hideInputs: 'maybe', onDrop: {}, dispatcher: 1 };
    const options = { ...given, keepAttributes };

    expect(withEndpoint(options)?.capture).toMatchObject({ project: 'default', hideInputs: true, isKept: undefined });
    expect(lines.sort()).toEqual([
      'configuration: expected `dispatcher` to be an undici dispatcher; the option is ignored.',
      'configuration: expected `hideInputs` to be true or false; true is used.',
      'configuration: expected `keepAttributes` to be a list of names, or of beginnings of names that end with *; the option is ignored.',
      'configuration: expected `onDrop` to be a function; the option is ignored.',
      "configuration: expected `project` to be a project's name, or an object with its `id`; the option is ignored.",
      'configuration: unknown option `lingerMs` is ignored; use `limits.lingerMs`.',
      'configuration: unknown option `samplerate` is ignored; use `sampleRate`.',
    ]);
  });

  it.each([-0.001, 1.001, Number.NaN, '0.5'])('as a sample rate: %j', (sampleRate) => {
    withEndpoint({ sampleRate });
    const expected = 'to be a number from 0 to 1';
    expect(lines).toEqual([`configuration: expected \`sampleRate\` ${expected}; the option is ignored.`]);
    withEndpoint({}, { RUNSPAN_SAMPLE_RATE: 'half', LANGSMITH_TRACING_SAMPLING_RATE: '0' });
    expect(lines.at(-1)).toBe(`configuration: expected \`RUNSPAN_SAMPLE_RATE\` ${expected}; the default is used.`);
  });

  it.each(['', 'error,', 'errors', 'slow', 'slow>10', 'slow>-1s', 'slow>1h', 'kept-error'])(
    'as a rule of `keep`: %j',
    (rule) => {
      const expected = "to be a list of rules such as 'error' and 'slow>10s'";
      expect(withEndpoint({ keep: ['error', rule] })?.capture.keep).toBeUndefined();
      expect(lines).toEqual([`configuration: expected \`keep\` ${expected}; the option is ignored.`]);
      expect(withEndpoint({}, { RUNSPAN_KEEP: `error,${rule}` })?.capture.keep).toBeUndefined();
      expect(lines.slice(1)).toEqual([`configuration: expected \`RUNSPAN_KEEP\` ${expected}; the default is used.`]);
    },
  );

  it('and hides payloads if it may have meant to hide them', () => {
    expect(withEndpoint({}, { RUNSPAN_HIDE_INPUTS: 'sk-secret' })?.capture.hideInputs).toBe(true);
    expect(lines).toEqual(['configuration: expected RUNSPAN_HIDE_INPUTS to be true or false; true is used.']);
    expect(withEndpoint({ redact: { paths: ['inputs.a'] } })?.capture.payload.redaction).toBe(hideAll);
    expect(lines[1]).toBe('configure: expected `redact` to be the result of redact(); every payload is hidden');
  });

  it.each(['5', 0, -1, 1.5, Number.NaN, null])('as a limit: %j', (given) => {
    expect(withEndpoint({ limits: { batchBytes: given } })?.limits).toEqual({ ...defaultLimits, ...defaultTuning });
    expect(lines).toEqual([
      'configuration: expected `limits.batchBytes` to be a whole number from 1; the option is ignored.',
    ]);
    expect(withEndpoint({ limits: { batchBytes: 1, batchsize: 1 } })?.limits).toEqual({
      ...{ ...defaultLimits, ...defaultTuning },
      batchBytes: 1,
    });
    expect(lines[1]).toBe('configuration: unknown option `limits.batchsize` is ignored.');
  });

  it('as a delay that no timer can wait for, and the line says how long it can be', () => {
    expect(withEndpoint({ limits: { spoolAgeMs: 2 ** 31 - 1, ageMs: 2 ** 31 } })?.limits).toMatchObject({
      spoolAgeMs: 2_147_483_647,
      ageMs: 900_000,
    });
    const expected = '`limits.ageMs` to be a whole number from 1 to 2147483647';
    expect(lines).toEqual([`configuration: expected ${expected}; the option is ignored.`]);
  });

  it.each([
    [undefined, 0, 0],
    [true, 3, 0],
    [false, 0, 0],
    ['yes', 0, 1],
    [1, 0, 1],
  ])('as `handleSignals`: %j handles %i signals', (handleSignals, count, lineCount) => {
    expect(withEndpoint({ handleSignals })?.signals).toHaveLength(count);
    const line = 'configuration: expected `handleSignals` to be true or false; the option is ignored.';
    expect(lines).toEqual(Array(lineCount).fill(line));
  });
});

it.each([
  ['{}', {}, 2_000],
  ['{"startDelayMs":0}', {}, 0],
  ['{"startDelayMs":250}', { startDelayMs: 5 }, 5],
  ['[]', {}, 2_000],
  ['{"startDelayMs":250', {}, 2_000],
])('RUNSPAN_DEV=%s with the limits %j means that a start waits %i ms', (RUNSPAN_DEV, limits, ms) => {
  expect(withEndpoint({ limits }, { RUNSPAN_DEV })?.limits.startDelayMs).toBe(ms);
  const line = 'configuration: RUNSPAN_DEV is no JSON object.';
  expect(lines).toEqual(/^\{.*\}$/.test(RUNSPAN_DEV) ? [] : [line]);
});

it.each<[object, string]>([
  [{ startDelayMs: '9' }, 'expected `RUNSPAN_DEV.startDelayMs` to be a whole number from 0 to 2147483647; the option'],
  [{ limits: { openRuns: null } }, 'expected `RUNSPAN_DEV.limits.openRuns` to be a whole number from 1; the option'],
  [{ limits: { lingerMs: 'x' } }, 'unknown option `RUNSPAN_DEV.limits.lingerMs`'],
  [{ limits: [1] }, 'expected `RUNSPAN_DEV.limits` to be an object, got a list; the options'],
])('RUNSPAN_DEV with %j leaves the limits as they are, and one line is logged', (given, mistake) => {
  const settings = withEndpoint({}, { RUNSPAN_DEV: JSON.stringify(given) });
  expect(settings?.limits).toEqual({ ...defaultLimits, ...defaultTuning });
  expect(lines).toEqual([expect.stringContaining(`configuration: ${mistake}`)]);
});

describe('spoolDir', () => {
  it.each([
    [{ spoolDir: 'kept' }, {}, 'kept'],
    [{ spoolDir: '~/kept' }, {}, '~/kept'],
    [{}, { RUNSPAN_SPOOL_DIR: 'kept' }, 'kept'],
  ])('%j, %j is below the working directory', (options, environment, expected) => {
    expect(withEndpoint({ ...options, durability: 'spill' }, environment)?.spoolDir).toBe(
      join(process.cwd(), expected),
    );
  });

  it.runIf(process.platform !== 'win32').each([
    ['exists', root, join(root, '.runspan', 'spool')],
    ['is not set', '', join(tmpdir(), 'runspan-spool')],
    ['does not exist', join(root, 'nonexistent'), join(tmpdir(), 'runspan-spool')],
    ['is no folder', '/dev/null', join(tmpdir(), 'runspan-spool')],
  ])(
    'is by default in the home folder, or else in the folder for temporary files: a home that %s',
    (_, home, expected) => {
      vi.stubEnv('HOME', home);
      expect(withEndpoint({ durability: 'spill' })?.spoolDir).toBe(expected);
    },
  );
});

it.each([
  [{}, {}, 1],
  [{}, { RUNSPAN_LOG: 'silent' }, 0],
  [{}, { RUNSPAN_LOG: 'error' }, 0],
  [{ log: 'debug' }, { RUNSPAN_LOG: 'silent' }, 1],
  [{ log: 'silent' }, { RUNSPAN_LOG: 'debug' }, 0],
])('the log with %j and %j has %i lines for an invalid option', (options, environment, count) => {
  const error = vi.spyOn(console, 'error').mockImplementation(() => {});
  environmentOf(environment as Record<string, string>);
  resolveSettings({ ...options, unknown: 1 } as ConfigureOptions);
  expect(error).toHaveBeenCalledTimes(count);
});

it('redaction by names is the default, and `redact` replaces it', () => {
  const redaction = redact({ keys: false });
  expect(withEndpoint({})?.capture.payload.redaction).toBe(defaultRedaction());
  expect(withEndpoint({ redact: redaction })?.capture.payload.redaction).toBe(redaction);
  expect(lines).toEqual([]);
});

describe('headers', () => {
  const given = { 'X-Team': 'a', 'x-tier': 'b' };

  it.each<[string, unknown]>([
    ['an object', given],
    ['Headers', new Headers(given)],
    ['a Map', new Map(Object.entries(given))],
    ['a list of pairs', Object.entries(given)],
  ])('are sent if they are %s', (_, headers) => {
    expect(withEndpoint({ headers })?.headers).toEqual({ 'x-team': 'a', 'x-tier': 'b', 'user-agent': 'runspan' });
    expect(lines).toEqual([]);
  });

  it.each<[string, unknown]>([
    ['null', null],
    ['text', 'x-team: a'],
    ['a promise', Promise.resolve(given)],
    ['a list of texts', ['x-team', 'a']],
    ['a Map with other keys', new Map([[{}, 'a']])],
  ])('are ignored, and reported without their content, if they are %s', (_, headers) => {
    expect(withEndpoint({ headers })?.headers).toEqual({ 'user-agent': 'runspan' });
    expect(lines).toEqual(['configuration: expected `headers` to be names and values; the option is ignored.']);
  });

  it.each<[string, Record<string, string>, string | undefined]>([
    ['the endpoint of the environment', { RUNSPAN_ENDPOINT: `${ENDPOINT}/path` }, 'id'],
    ['another origin', { RUNSPAN_ENDPOINT: 'http://127.0.0.1:4778' }, undefined],
    ['an endpoint that only the options set', {}, undefined],
  ])('contain the id of the program for %s: %j', (_, variables, id) => {
    expect(withEndpoint({}, { RUNSPAN_DEV: '{"program":"id"}', ...variables })?.headers['x-runspan-program']).toBe(id);
    expect(lines).toEqual([]);
  });

  it('contain the key and the workspace', () => {
    expect(withEndpoint({ apiKey: ' k-1 \n', workspaceId: 'w-1' })?.headers).toMatchObject({
      'x-api-key': 'k-1',
      'x-tenant-id': 'w-1',
    });
  });
});

describe('with the protocol otlp', () => {
  const OTLP = { RUNSPAN_PROTOCOL: 'otlp' };

  it.each([
    [{ endpoint: ENDPOINT }, {}, `${ENDPOINT}/v1/traces`],
    [{ endpoint: `${ENDPOINT}/` }, {}, `${ENDPOINT}/v1/traces`],
    [{ endpoint: `${ENDPOINT}/otel/v1/traces` }, {}, `${ENDPOINT}/otel/v1/traces`],
    [{}, { RUNSPAN_ENDPOINT: ENDPOINT, OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:1' }, `${ENDPOINT}/v1/traces`],
    [{}, { OTEL_EXPORTER_OTLP_ENDPOINT: `${ENDPOINT}/base/` }, `${ENDPOINT}/base/v1/traces`],
    [
      {},
      { OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: `${ENDPOINT}/x`, OTEL_EXPORTER_OTLP_ENDPOINT: ENDPOINT },
      `${ENDPOINT}/x`,
    ],
  ])('%j and %j send spans to %s', (options, environment, expected) => {
    expect(resolve(options, { ...OTLP, ...environment })?.endpoint.href).toBe(expected);
    expect(lines).toEqual([]);
  });

  it("OpenTelemetry's headers may contain the key", () => {
    const headers = 'X-API-Key=sk-of-otel,x-tenant-id=w1,x-team=search';
    const settings = resolve(
      {},
      { ...OTLP, OTEL_EXPORTER_OTLP_ENDPOINT: ENDPOINT, OTEL_EXPORTER_OTLP_HEADERS: headers },
    );
    expect(settings?.headers).toMatchObject({ 'x-api-key': 'sk-of-otel', 'x-tenant-id': 'w1', 'x-team': 'search' });
    expect(lines).toEqual([]);
  });

  it('an endpoint with a password is refused with and without a path', () => {
    for (const path of ['', '/', '/v1/traces'])
      expect(resolve({ endpoint: `http://user:pw-of-url@127.0.0.1:4777${path}` }, OTLP)).toBeUndefined();
    expect(lines).toHaveLength(1);
    expect(lines[0]).not.toContain('pw-of-url');
  });

  it("OpenTelemetry's headers go only to OpenTelemetry's endpoint, and the key and the workspace only to the own endpoint", () => {
    const environment = {
      ...OTLP,
      OTEL_EXPORTER_OTLP_ENDPOINT: 'https://otel.test',
      OTEL_EXPORTER_OTLP_HEADERS: 'Authorization=Basic%20YTpi, x-team=search',
      RUNSPAN_API_KEY: 'sk-secret',
      RUNSPAN_WORKSPACE_ID: 'w1',
      LANGSMITH_TRACING: 'true',
      LANGSMITH_API_KEY: 'ls-secret',
    };
    expect(resolve({}, environment)?.headers).toEqual({
      authorization: 'Basic YTpi',
      'x-team': 'search',
      'user-agent': 'runspan',
    });
    expect(resolve({}, { ...environment, RUNSPAN_ENDPOINT: 'https://own.test' })?.headers).toEqual({
      'x-api-key': 'sk-secret',
      'x-tenant-id': 'w1',
      'user-agent': 'runspan',
    });
  });

  it.each([
    [{}, 'protobuf', 0],
    [{ OTEL_EXPORTER_OTLP_PROTOCOL: 'http/json' }, 'json', 0],
    [{ OTEL_EXPORTER_OTLP_PROTOCOL: 'http/json', OTEL_EXPORTER_OTLP_TRACES_PROTOCOL: 'http/protobuf' }, 'protobuf', 0],
    [{ OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc' }, 'protobuf', 1],
    [{ RUNSPAN_PROTOCOL: 'otlp-json' }, 'json', 0],
  ])('%j sends %s', (environment, format, complaints) => {
    expect(resolve({}, { ...OTLP, ...environment })?.otlp?.format).toBe(format);
    expect(lines).toHaveLength(complaints);
  });

  it('the resource has the attributes of the environment, and an invalid pair is named without its value', () => {
    const environment = {
      ...OTLP,
      OTEL_SERVICE_NAME: 'shop',
      OTEL_RESOURCE_ATTRIBUTES: 'service.name=other,k8s.pod.name=a%2Cb,secret, =x, service.namespace=eu ',
    };
    expect(resolve({}, environment)?.otlp?.resource).toEqual({
      'service.name': 'shop',
      'k8s.pod.name': 'a,b',
      'service.namespace': 'eu',
    });
    expect(lines.join()).toContain('OTEL_RESOURCE_ATTRIBUTES');
    expect(lines.join()).not.toContain('secret');
  });

  it('an unknown protocol is ignored', () => {
    expect(withEndpoint({ protocol: 'grpc' })?.otlp).toBeUndefined();
    expect(lines).toEqual(['configuration: expected `protocol` to be runs, otlp, otlp-json; the option is ignored.']);
  });
});
