import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { diagnostics } from '../../src/base/diagnostics.ts';
import { defaultLimits } from '../../src/base/limits.ts';
import { type ConfigureOptions, resolveSettings } from '../../src/export/settings.ts';

const ENDPOINT = 'http://127.0.0.1:4777';
let lines: string[] = [];

/** Settles options in an environment that holds nothing else; diagnostics go to `lines`. */
function resolve(options?: ConfigureOptions, environment: Record<string, string> = {}) {
  for (const [name, value] of Object.entries(environment)) vi.stubEnv(name, value);
  return resolveSettings(typeof options === 'object' ? { log: (_, line) => lines.push(line), ...options } : options);
}

beforeEach(() => {
  lines = [];
  diagnostics.forgetPlaces();
  for (const name of Object.keys(process.env)) {
    if (/^(RUNSPAN|LANGSMITH)_/.test(name)) vi.stubEnv(name, undefined);
  }
});
afterEach(() => {
  vi.unstubAllEnvs();
  diagnostics.setLog('warn');
});

describe('where settings come from', () => {
  it('is off, without a word, when there is nothing', () => {
    expect(resolve({})).toBeUndefined();
    expect(lines).toEqual([]);
  });

  it('takes an option before the environment, and that before the default', () => {
    const environment = { RUNSPAN_ENDPOINT: 'http://127.0.0.1:1', RUNSPAN_PROJECT: 'env' };

    expect(resolve({ endpoint: ENDPOINT, project: 'option' }, environment)).toMatchObject({
      endpoint: new URL(ENDPOINT),
      capture: { project: 'option' },
    });
    expect(resolve({}, environment)).toMatchObject({
      endpoint: new URL('http://127.0.0.1:1'),
      capture: { project: 'env' },
    });
    expect(resolve({ endpoint: ENDPOINT }, { RUNSPAN_PROJECT: '' })?.capture.project).toBe('default');
  });

  it('sends key and workspace as the headers of the interface', () => {
    expect(resolve({ endpoint: ENDPOINT, apiKey: ' k-1 \n', workspaceId: 'w-1' })?.headers).toMatchObject({
      'x-api-key': 'k-1',
      'x-tenant-id': 'w-1',
    });
  });

  it.each([
    ['false', false],
    ['FALSE', false],
    ['0', false],
    ['true', true],
    ['1', true],
  ])('with RUNSPAN_TRACING=%s is on: %s', (value, isOn) => {
    expect(resolve({ endpoint: ENDPOINT }, { RUNSPAN_TRACING: value }) !== undefined).toBe(isOn);
  });

  it('is turned off by the option whatever the environment says', () => {
    expect(resolve({ endpoint: ENDPOINT, tracing: false }, { RUNSPAN_TRACING: 'true' })).toBeUndefined();
  });

  it('hides payloads when either name of the variable says so', () => {
    const capture = (environment: Record<string, string>) => resolve({ endpoint: ENDPOINT }, environment)?.capture;

    expect(capture({ RUNSPAN_HIDE_INPUTS: 'true' })).toMatchObject({ hideInputs: true, hideOutputs: false });
    expect(capture({ LANGSMITH_HIDE_OUTPUTS: 'true', RUNSPAN_HIDE_INPUTS: 'false' })).toMatchObject({
      hideInputs: false,
      hideOutputs: true,
    });
  });
});

describe('the LANGSMITH_ names', () => {
  const theirs = {
    LANGSMITH_ENDPOINT: ENDPOINT,
    LANGSMITH_API_KEY: 'their-key',
    LANGSMITH_WORKSPACE_ID: 'their-workspace',
    LANGSMITH_TRACING: 'true',
  };

  it('are read together when none of ours is set', () => {
    expect(resolve({}, theirs)).toMatchObject({
      endpoint: new URL(ENDPOINT),
      headers: { 'x-api-key': 'their-key', 'x-tenant-id': 'their-workspace' },
    });
  });

  it('are not read when their tracing is not on', () => {
    expect(resolve({}, { ...theirs, LANGSMITH_TRACING: 'false' })).toBeUndefined();
  });

  it.each([
    ['an endpoint', { RUNSPAN_ENDPOINT: 'https://ours.example' }],
    ['a workspace', { RUNSPAN_WORKSPACE_ID: 'ours' }],
    ['a key', { RUNSPAN_API_KEY: 'ours' }],
  ])('give no key to another endpoint when %s of ours is set', (_, ours) => {
    const settings = resolve({}, { ...theirs, ...ours });

    expect(JSON.stringify(settings?.headers ?? {})).not.toContain('their');
    expect(settings?.endpoint.href).not.toBe(`${ENDPOINT}/`);
  });

  it('give the project one by one', () => {
    expect(resolve({ endpoint: ENDPOINT }, { LANGSMITH_PROJECT: 'theirs' })?.capture.project).toBe('theirs');
  });
});

describe('what does not hold', () => {
  it('names RUNSPAN_ENDPOINT when there is a key and no endpoint', () => {
    expect(resolve({ apiKey: 'sk-secret' })).toBeUndefined();
    expect(lines).toEqual([
      'configuration: there is an API key and no endpoint, so tracing is off; set RUNSPAN_ENDPOINT or `endpoint`.',
    ]);
  });

  it.each([
    ['127.0.0.1:4777', 'is no http or https address'],
    ['nonsense', 'is no http or https address'],
    ['', 'is no http or https address'],
    ['ftp://host', 'is no http or https address'],
    ['http://user:sk-secret@host', 'holds a user or password'],
    ['http://host/?key=sk-secret', 'has a query or fragment'],
  ])('turns tracing off for the endpoint %j', (endpoint, problem) => {
    expect(resolve({ endpoint })).toBeUndefined();
    expect(lines).toHaveLength(1);
    expect(lines[0]).toContain(problem);
    expect(lines[0]).not.toContain('secret');
  });

  it.each(['sk-\nsecret', 'sk secret', 'sk-sécret', 'k'.repeat(513)])('turns tracing off for the key %j', (apiKey) => {
    expect(resolve({ endpoint: ENDPOINT, apiKey })).toBeUndefined();
    expect(lines).toHaveLength(1);
    expect(lines[0]).not.toContain(apiKey);
  });

  it.each([
    [511, true],
    [512, true],
    [513, false],
  ])('takes a key of %i characters: %s', (length, isTaken) => {
    expect(resolve({ endpoint: ENDPOINT, apiKey: 'k'.repeat(length) }) !== undefined).toBe(isTaken);
  });

  it('does not send the key over plain HTTP to another host, unless that is allowed', () => {
    const remote = { endpoint: 'http://service.internal', apiKey: 'k-1' };

    expect(resolve(remote)?.headers).not.toHaveProperty('x-api-key');
    expect(lines).toHaveLength(1);
    expect(resolve({ ...remote, allowInsecure: true })?.headers).toHaveProperty('x-api-key', 'k-1');
    expect(resolve(remote, { RUNSPAN_ALLOW_INSECURE: 'true' })?.headers).toHaveProperty('x-api-key', 'k-1');
    expect(resolve({ ...remote, endpoint: 'https://service.internal' })?.headers).toHaveProperty('x-api-key');
  });

  it.each([
    ['http://127.0.0.1', true],
    ['http://127.9.9.9:80', true],
    ['http://2130706433', true],
    ['http://localhost:1', true],
    ['http://[::1]:1', true],
    ['http://localhost.evil.com', false],
    ['http://127.0.0.1.evil.com', false],
    ['http://10.0.0.1', false],
  ])('takes %s for this host: %s', (endpoint, isLoopback) => {
    expect('x-api-key' in (resolve({ endpoint, apiKey: 'k' })?.headers ?? {})).toBe(isLoopback);
  });

  it('tells each unknown or ill-typed option in a line, and goes on with the rest', () => {
    const options = { endpoint: ENDPOINT, samplerate: 1, project: 5, hideInputs: 'yes', onDrop: {}, dispatcher: 1 };
    const settings = resolve(options as unknown as ConfigureOptions);

    expect(settings?.capture).toMatchObject({ project: 'default', hideInputs: false });
    expect(lines.sort()).toEqual([
      'configuration: expected `dispatcher` to be an undici dispatcher; the default is used.',
      'configuration: expected `hideInputs` to be true or false.',
      'configuration: expected `onDrop` to be a function; the default is used.',
      'configuration: expected `project` to be text; the default is used.',
      'configuration: unknown option `samplerate`; left out.',
    ]);
  });

  it('tells a variable that is neither true nor false', () => {
    expect(resolve({ endpoint: ENDPOINT }, { RUNSPAN_HIDE_INPUTS: 'sk-secret' })?.capture.hideInputs).toBe(false);
    expect(lines).toEqual(['configuration: expected RUNSPAN_HIDE_INPUTS to be true or false; it is taken as false.']);
  });

  it.each([
    [1, 1],
    [0, defaultLimits.batchRuns],
    [-1, defaultLimits.batchRuns],
    [1.5, defaultLimits.batchRuns],
    [Number.NaN, defaultLimits.batchRuns],
    ['5', defaultLimits.batchRuns],
  ])('takes the limit %j as %i', (given, taken) => {
    expect(resolve({ endpoint: ENDPOINT, limits: { batchRuns: given as number } })?.limits.batchRuns).toBe(taken);
    expect(lines).toHaveLength(given === taken ? 0 : 1);
  });

  it.each([
    [2_147_483_647, 2_147_483_647],
    [2_147_483_648, defaultLimits.lingerMs],
  ])('takes a delay of %i ms as %i', (given, taken) => {
    expect(resolve({ endpoint: ENDPOINT, limits: { lingerMs: given } })?.limits.lingerMs).toBe(taken);
  });

  it('tells an unknown limit', () => {
    expect(resolve({ endpoint: ENDPOINT, limits: { batchsize: 1 } as object })?.limits).toEqual(defaultLimits);
    expect(lines).toEqual(['configuration: unknown limit `batchsize`; left out.']);
  });

  it('lets headers of yours go along, but none that requests set themselves, and no broken ones', () => {
    const headers = { 'X-Team': 'a', 'X-Api-Key': 'sk-secret', Host: 'h', 'bad name': 'x', broken: 'a\r\nb: c' };
    const settled = resolve({ endpoint: ENDPOINT, headers });

    expect(settled?.headers).toEqual({ 'x-team': 'a', 'user-agent': 'runspan' });
    expect(lines).toHaveLength(4);
    expect(lines.join()).not.toContain('secret');
  });

  it.each([['text'], [5], [null]])('is not hurt by the options %j', (options) => {
    vi.stubEnv('RUNSPAN_LOG', 'silent');
    expect(resolve(options as unknown as ConfigureOptions)).toBeUndefined();
  });
});

describe('the log', () => {
  const logged = (options: ConfigureOptions, environment = {}) => {
    const error = vi.spyOn(console, 'error').mockImplementation(() => {});
    for (const [name, value] of Object.entries(environment)) vi.stubEnv(name, value as string);
    resolveSettings({ ...options, unknown: 1 } as ConfigureOptions);
    const count = error.mock.calls.length;
    error.mockRestore();
    return count;
  };

  it.each([
    [{}, {}, 1],
    [{}, { RUNSPAN_LOG: 'silent' }, 0],
    [{}, { RUNSPAN_LOG: 'error' }, 0],
    [{ log: 'debug' as const }, { RUNSPAN_LOG: 'silent' }, 1],
    [{ log: 'silent' as const }, { RUNSPAN_LOG: 'debug' }, 0],
  ])('with %j and %j prints %i lines for a mistake', (options, environment, count) => {
    expect(logged(options, environment)).toBe(count);
  });
});
