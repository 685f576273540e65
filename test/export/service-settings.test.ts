import { beforeEach, describe, expect, it } from 'vitest';
import { serviceOf } from '../../src/export/service-settings.ts';
import type { ConfigureOptions } from '../../src/export/settings.ts';
import { environmentOf } from '../support/environment.ts';
import { told } from '../support/told.ts';

const ENDPOINT = 'http://127.0.0.1:4777';

/** What the options give in an environment that holds nothing else. */
function service(options: ConfigureOptions, environment: Record<string, string> = {}) {
  environmentOf(environment);
  return serviceOf(options);
}

beforeEach(() => void told());

describe('where runs are sent', () => {
  it('is nowhere, without a word, when there is nothing', () => {
    const lines = told();

    expect(service({})).toBeUndefined();
    expect(lines).toEqual([]);
  });

  it('sends key and workspace as the headers of the interface', () => {
    expect(service({ endpoint: ENDPOINT, apiKey: ' k-1 \n', workspaceId: 'w-1' })?.headers).toMatchObject({
      'x-api-key': 'k-1',
      'x-tenant-id': 'w-1',
    });
  });

  it('lets headers of yours go along, but none that requests set themselves, and no broken ones', () => {
    const lines = told();
    const headers = { 'X-Team': 'a', 'X-Api-Key': 'sk-secret', Host: 'h', 'bad name': 'x', broken: 'a\r\nb: c' };
    const settled = service({ endpoint: ENDPOINT, headers });

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
    const lines = told();
    const settled = service({ endpoint: ENDPOINT, headers } as ConfigureOptions);
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
    const lines = told();
    expect(service({ endpoint: ENDPOINT, headers } as ConfigureOptions)?.headers).toEqual({ 'user-agent': 'runspan' });
    expect(lines).toEqual(['warn: configuration: expected `headers` to be names and values; left out.']);
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
    expect(service({}, theirs)).toMatchObject({
      endpoint: new URL(ENDPOINT),
      headers: { 'x-api-key': 'their-key', 'x-tenant-id': 'their-workspace' },
    });
  });

  it('are not read when their tracing is not on', () => {
    expect(service({}, { ...theirs, LANGSMITH_TRACING: 'false' })).toBeUndefined();
  });

  it.each([
    ['an endpoint', { RUNSPAN_ENDPOINT: 'https://ours.example' }],
    ['a workspace', { RUNSPAN_WORKSPACE_ID: 'ours' }],
    ['a key', { RUNSPAN_API_KEY: 'ours' }],
  ])('give no key to another endpoint when %s of ours is set', (_, ours) => {
    const settings = service({}, { ...theirs, ...ours });

    expect(JSON.stringify(settings?.headers ?? {})).not.toContain('their');
    expect(settings?.endpoint.href).not.toBe(`${ENDPOINT}/`);
  });
});

describe('what does not hold', () => {
  it('names RUNSPAN_ENDPOINT when there is a key and no endpoint', () => {
    const lines = told();
    expect(service({ apiKey: 'sk-secret' })).toBeUndefined();
    expect(lines).toEqual([
      'warn: configuration: there is an API key and no endpoint, so tracing is off; set RUNSPAN_ENDPOINT or `endpoint`.',
    ]);
  });

  it.each([
    ['127.0.0.1:4777', 'is no http or https address'],
    ['nonsense', 'is no http or https address'],
    ['ftp://host', 'is no http or https address'],
    ['http://user:sk-secret@host', 'holds a user or password'],
    ['http://host/?key=sk-secret', 'has a query or fragment'],
  ])('turns tracing off for the endpoint %j', (endpoint, problem) => {
    const lines = told();
    expect(service({ endpoint })).toBeUndefined();
    expect(lines).toHaveLength(1);
    expect(lines[0]).toContain(problem);
    expect(lines[0]).not.toContain('secret');
  });

  it.each(['sk-\nsecret', 'sk secret', 'sk-sécret', 'k'.repeat(8193)])('turns tracing off for the key %j', (apiKey) => {
    const lines = told();
    expect(service({ endpoint: ENDPOINT, apiKey })).toBeUndefined();
    expect(lines).toHaveLength(1);
    expect(lines[0]).not.toContain(apiKey);
  });

  it.each([
    [8191, true],
    [8192, true],
    [8193, false],
  ])('takes a key of %i characters: %s', (length, isTaken) => {
    expect(service({ endpoint: ENDPOINT, apiKey: 'k'.repeat(length) }) !== undefined).toBe(isTaken);
  });

  it('does not send the key over plain HTTP to another host, unless that is allowed', () => {
    const lines = told();
    const remote = { endpoint: 'http://service.internal', apiKey: 'k-1' };

    expect(service(remote)?.headers).not.toHaveProperty('x-api-key');
    expect(lines).toHaveLength(1);
    expect(service({ ...remote, allowInsecure: true })?.headers).toHaveProperty('x-api-key', 'k-1');
    expect(service(remote, { RUNSPAN_ALLOW_INSECURE: 'true' })?.headers).toHaveProperty('x-api-key', 'k-1');
    expect(service({ ...remote, endpoint: 'https://service.internal' })?.headers).toHaveProperty('x-api-key');
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
    expect('x-api-key' in (service({ endpoint, apiKey: 'k' })?.headers ?? {})).toBe(isLoopback);
  });
});
