import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { diagnostics } from '../../src/base/diagnostics.ts';
import { DELAY_MAX_MS, defaultLimits } from '../../src/base/limits.ts';
import type { ConfigureOptions } from '../../src/export/settings.ts';
import { resolveSettings } from '../../src/export/settings.ts';
import { defaultRedaction, hideAll, redact } from '../../src/payload/redact.ts';
import { environmentOf } from '../support/environment.ts';
import { root } from '../support/folders.ts';

const ENDPOINT = 'http://127.0.0.1:4777';
let lines: string[] = [];

/** Settles options in an environment that holds nothing else; diagnostics go to `lines`. */
function resolve(options?: ConfigureOptions, environment: Record<string, string> = {}) {
  environmentOf(environment);
  return resolveSettings(typeof options === 'object' ? { log: (_, line) => lines.push(line), ...options } : options);
}

beforeEach(() => {
  lines = [];
  diagnostics.forgetPlaces();
});
afterEach(() => diagnostics.setLog('warn'));

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

  it.each([
    ['false', false],
    ['FALSE', false],
    ['0', false],
    ['off', false],
    ['no', false],
    ['true', true],
    ['on', true],
    ['yes', true],
    ['1', true],
  ])('with RUNSPAN_TRACING=%s is on: %s', (value, isOn) => {
    expect(resolve({ endpoint: ENDPOINT }, { RUNSPAN_TRACING: value }) !== undefined).toBe(isOn);
  });

  it('is turned off by the option whatever the environment says', () => {
    expect(resolve({ endpoint: ENDPOINT, tracing: false }, { RUNSPAN_TRACING: 'true' })).toBeUndefined();
  });

  it('takes the sample rate from option, our variable, theirs, else keeps every trace', () => {
    const start = { traceId: '0195c0de-0000-7000-8000-000000000000', name: 'a', runType: 'chain', project: 'p' };
    const isKept = (options: ConfigureOptions, environment: Record<string, string>) =>
      resolve({ endpoint: ENDPOINT, ...options }, environment)?.capture.sampling?.(start);
    const both = { RUNSPAN_SAMPLE_RATE: '0', LANGSMITH_TRACING_SAMPLING_RATE: '0' };
    expect(isKept({}, both)).toBe(false);
    expect(isKept({}, { LANGSMITH_TRACING_SAMPLING_RATE: '0' })).toBe(false);
    expect(isKept({}, { ...both, RUNSPAN_SAMPLE_RATE: '1' })).toBeUndefined();
    expect(isKept({ sampleRate: 1 }, both)).toBeUndefined();
    expect(isKept({ sampler: () => true }, both)).toBe(true);
    expect(lines).toEqual([]);
  });

  it('takes the project of LANGSMITH_PROJECT where there is none of ours', () => {
    expect(resolve({ endpoint: ENDPOINT }, { LANGSMITH_PROJECT: 'theirs' })?.capture.project).toBe('theirs');
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

describe('spoolDir', () => {
  it.each([
    ['kept', {}, 'kept'],
    ['~/kept', {}, '~/kept'],
    [undefined, { RUNSPAN_SPOOL_DIR: 'kept' }, 'kept'],
  ])('that is relative, %j, is below the working directory', (spoolDir, environment, expected) => {
    const options = spoolDir === undefined ? {} : { spoolDir };
    expect(resolve({ endpoint: ENDPOINT, ...options }, environment)?.spoolDir).toBe(join(process.cwd(), expected));
  });

  it.runIf(process.platform !== 'win32').each([
    ['there is', root, join(root, '.runspan', 'spool')],
    // A folder of its own, and not one of the working directory.
    ['nobody has set', '', join(tmpdir(), 'runspan-spool')],
    ['does not exist', join(root, 'nonexistent'), join(tmpdir(), 'runspan-spool')],
    ['is no folder', '/dev/null', join(tmpdir(), 'runspan-spool')],
  ])('is by default below the home folder, or the one for temporary files: a home that %s', (_, home, expected) => {
    vi.stubEnv('HOME', home);
    onTestFinished(() => void vi.unstubAllEnvs());
    expect(resolve({ endpoint: ENDPOINT })?.spoolDir).toBe(expected);
  });
});

describe('syncEveryMs', () => {
  it.each([1, 500, DELAY_MAX_MS])('is used: %s', (syncEveryMs) => {
    expect(resolve({ endpoint: ENDPOINT, syncEveryMs })?.syncEveryMs).toBe(syncEveryMs);
    expect(lines).toEqual([]);
  });

  it.each([0, -1, 0.5, Number.NaN, DELAY_MAX_MS + 1, '500'])('is reported and ignored: %s', (syncEveryMs) => {
    expect(resolve({ endpoint: ENDPOINT, syncEveryMs: syncEveryMs as number })?.syncEveryMs).toBeUndefined();
    expect(lines).toEqual([
      expect.stringContaining('expected `syncEveryMs` to be a positive whole number of milliseconds'),
    ]);
  });
});

describe('handleSignals', () => {
  it.each([
    [undefined, false, []],
    [false, false, []],
    [true, true, []],
    ['maybe', false, ['configuration: expected `handleSignals` to be true or false; it is taken as false.']],
    ['yes', true, ['configuration: expected `handleSignals` to be true or false; it is taken as true.']],
    [1, true, ['configuration: expected `handleSignals` to be true or false; it is taken as true.']],
    ['Off', false, ['configuration: expected `handleSignals` to be true or false; it is taken as false.']],
  ])('is off unless asked for: %j', (handleSignals, expected, told) => {
    expect(resolve({ endpoint: ENDPOINT, handleSignals } as ConfigureOptions)?.handleSignals).toBe(expected);
    expect(lines).toEqual(told);
  });
});

describe('what does not hold', () => {
  it('tells each unknown or ill-typed option in a line, and goes on with the rest', () => {
    const options = { endpoint: ENDPOINT, samplerate: 1, project: 5, hideInputs: 'maybe', onDrop: {}, dispatcher: 1 };
    const settings = resolve(options as unknown as ConfigureOptions);

    expect(settings?.capture).toMatchObject({ project: 'default', hideInputs: true });
    expect(lines.sort()).toEqual([
      'configuration: expected `dispatcher` to be an undici dispatcher; the default is used.',
      'configuration: expected `hideInputs` to be true or false; it is taken as true.',
      'configuration: expected `onDrop` to be a function; the default is used.',
      'configuration: expected `project` to be text; the default is used.',
      'configuration: unknown option `samplerate`; left out.',
    ]);
  });

  it.each([
    [0, true],
    [1, true],
    [-0.001, false],
    [1.001, false],
    [Number.NaN, false],
    ['0.5', false],
  ])('a sample rate of %j holds: %s', (sampleRate, holds) => {
    resolve({ endpoint: ENDPOINT, sampleRate: sampleRate as number });
    const line = 'configuration: expected `sampleRate` to be a number from 0 to 1; the default is used.';
    expect(lines).toEqual(holds ? [] : [line]);
  });

  it('records everything with a rate in the environment that is none, and with a sampler that is no function', () => {
    const environment = { RUNSPAN_SAMPLE_RATE: 'half', LANGSMITH_TRACING_SAMPLING_RATE: '0' };
    expect(resolve({ endpoint: ENDPOINT, sampler: 1 as never }, environment)?.capture.sampling).toBeUndefined();
    expect(lines.sort()).toEqual([
      'configuration: expected `RUNSPAN_SAMPLE_RATE` to be a number from 0 to 1; the default is used.',
      'configuration: expected `sampler` to be a function; the default is used.',
    ]);
  });

  it('hides payloads rather than record what was meant to be hidden', () => {
    expect(resolve({ endpoint: ENDPOINT }, { RUNSPAN_HIDE_INPUTS: 'sk-secret' })?.capture.hideInputs).toBe(true);
    expect(lines).toEqual(['configuration: expected RUNSPAN_HIDE_INPUTS to be true or false; it is taken as true.']);
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
    ['5', 'got "5"'],
    [0, 'got the number 0'],
    [Number.NaN, 'got the number NaN'],
    [null, 'got null'],
  ])('tells what it got for a limit, so that text is seen to be text: %j', (given, got) => {
    expect(resolve({ endpoint: ENDPOINT, limits: { batchBytes: given as number } })?.limits).toEqual(defaultLimits);
    expect(lines).toEqual([
      `configuration: expected limit \`batchBytes\` to be a whole number from 1, ${got}; the default is used.`,
    ]);
  });

  it('tells an unknown limit', () => {
    expect(resolve({ endpoint: ENDPOINT, limits: { batchsize: 1 } as object })?.limits).toEqual(defaultLimits);
    expect(lines).toEqual(['configuration: unknown limit `batchsize`; left out.']);
  });

  it.each([['text'], [5], [null]])('is not hurt by the options %j', (options) => {
    expect(resolve(options as unknown as ConfigureOptions, { RUNSPAN_LOG: 'silent' })).toBeUndefined();
  });
});

describe('the log', () => {
  const logged = (options: ConfigureOptions, environment = {}) => {
    const error = vi.spyOn(console, 'error').mockImplementation(() => {});
    environmentOf(environment);
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

describe('what is hidden', () => {
  it('is what names say where nothing is said, and what a redaction says', () => {
    const redaction = redact({ keys: false });
    expect(resolve({ endpoint: ENDPOINT })?.capture.payload.redaction).toBe(defaultRedaction());
    expect(resolve({ endpoint: ENDPOINT, redact: redaction })?.capture.payload.redaction).toBe(redaction);
    expect(lines).toEqual([]);
  });

  it('is everything where the option is no redaction', () => {
    const options = { endpoint: ENDPOINT, redact: { paths: ['inputs.a'] } as never };
    expect(resolve(options)?.capture.payload.redaction).toBe(hideAll);
    expect(lines).toEqual(['configure: expected `redact` to be what redact() gives; every payload is hidden']);
  });
});

describe('where runs are sent', () => {
  it('sends key and workspace as the headers of the interface', () => {
    expect(resolve({ endpoint: ENDPOINT, apiKey: ' k-1 \n', workspaceId: 'w-1' })?.headers).toMatchObject({
      'x-api-key': 'k-1',
      'x-tenant-id': 'w-1',
    });
  });

  it('lets headers of yours go along, but none that requests set themselves, and no broken ones', () => {
    const headers = { 'X-Team': 'a', 'X-Api-Key': 'sk-secret', Host: 'h', 'bad name': 'x', broken: 'a\r\nb: c' };
    const settled = resolve({ endpoint: ENDPOINT, headers });

    expect(settled?.headers).toEqual({ 'x-team': 'a', 'user-agent': 'runspan' });
    expect(lines).toHaveLength(4);
    expect(lines.join()).not.toContain('secret');
  });

  it.each<[string, ConfigureOptions['headers']]>([
    ['an object', { 'X-Team': 'a', 'x-tier': 'b' }],
    ['Headers', new Headers({ 'X-Team': 'a', 'x-tier': 'b' })],
    ['a Map', new Map(Object.entries({ 'X-Team': 'a', 'x-tier': 'b' }))],
    ['a list of pairs', Object.entries({ 'X-Team': 'a', 'x-tier': 'b' })],
  ])('takes headers as %s', (_, headers) => {
    const settled = resolve({ endpoint: ENDPOINT, headers } as ConfigureOptions);
    expect(settled?.headers).toEqual({ 'x-team': 'a', 'x-tier': 'b', 'user-agent': 'runspan' });
    expect(lines).toEqual([]);
  });

  it.each<[string, unknown]>([
    ['null', null],
    ['text', 'x-team: a'],
    ['a promise', Promise.resolve({ 'x-team': 'a' })],
    ['a list of texts', ['x-team', 'a']],
    ['a Map of something else', new Map([[{}, 'a']])],
  ])('tells of headers that are %s, without what they say, and goes on without them', (_, headers) => {
    expect(resolve({ endpoint: ENDPOINT, headers } as ConfigureOptions)?.headers).toEqual({ 'user-agent': 'runspan' });
    expect(lines).toEqual(['configuration: expected `headers` to be names and values; left out.']);
  });
});

describe('an endpoint or key that does not hold', () => {
  it('names RUNSPAN_ENDPOINT when there is a key and no endpoint', () => {
    expect(resolve({ apiKey: 'sk-secret' })).toBeUndefined();
    expect(lines).toEqual([
      'configuration: there is an API key and no endpoint, so tracing is off; set RUNSPAN_ENDPOINT or `endpoint`.',
    ]);
  });

  it.each([
    ['127.0.0.1:4777', 'is no http or https address'],
    ['nonsense', 'is no http or https address'],
    ['ftp://host', 'is no http or https address'],
    ['http://user:sk-secret@host', 'holds a user or password'],
    ['http://host/?key=sk-secret', 'has a query or fragment'],
  ])('turns tracing off for the endpoint %j', (endpoint, problem) => {
    expect(resolve({ endpoint })).toBeUndefined();
    expect(lines).toHaveLength(1);
    expect(lines[0]).toContain(problem);
    expect(lines[0]).not.toContain('secret');
  });

  it.each(['sk-\nsecret', 'sk secret', 'sk-sécret', 'k'.repeat(8193)])('turns tracing off for the key %j', (apiKey) => {
    expect(resolve({ endpoint: ENDPOINT, apiKey })).toBeUndefined();
    expect(lines).toHaveLength(1);
    expect(lines[0]).not.toContain(apiKey);
  });

  it.each([
    [8191, true],
    [8192, true],
    [8193, false],
  ])('takes a key of %i characters: %s', (length, isTaken) => {
    expect(resolve({ endpoint: ENDPOINT, apiKey: 'k'.repeat(length) }) !== undefined).toBe(isTaken);
  });
});
