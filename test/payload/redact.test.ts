import { describe, expect, test } from 'vitest';
import { traceable } from '#src/instrument/traceable.ts';
import { errorText } from '#src/payload/errors.ts';
import type { ValuePath } from '#src/payload/redaction/paths.ts';
import { defaultRedaction, hideAll, type RedactOptions, redact, redactionOf } from '#src/payload/redaction/redact.ts';
import { encodePayload, serialize } from '#src/payload/serialize.ts';
import type { PayloadRules } from '#src/payload/truncate.ts';
import { LIMITS, makeRun, makeSink } from '../run/memory-sink.ts';
import { logLines } from '../support/log-lines.ts';
import { polluted } from '../support/pollution.ts';

const throws = (thrown: unknown) => (): never => {
  throw thrown;
};

const INPUTS: ValuePath = ['inputs'];

const shown = (value: unknown, options?: RedactOptions, limits: Partial<typeof LIMITS> = {}): unknown =>
  JSON.parse(serialize(value, { ...LIMITS, ...limits, redaction: redact(options) }, INPUTS));

const rulesOf = (options?: RedactOptions) => ({ payload: { ...LIMITS, redaction: redact(options) } });

function jsonOf(field: 'inputs' | 'outputs', value: unknown, rules: PayloadRules): string {
  return encodePayload(field, value, makeSink({ payload: rules }).capture).json;
}

describe('names of secrets', () => {
  test('mask values in JSON text that is nested more deeply than the stack allows', () => {
    const around = (inner: string): string => `${'['.repeat(100_000)}{"password":${inner}}${']'.repeat(100_000)}`;
    expect(shown({ text: around('"h1dden"'), other: 1 })).toEqual({ text: around('"[Redacted]"'), other: 1 });
  });

  test('mask values at any depth and in containers of every kind', () => {
    const value = {
      headers: new Headers({ authorization: 'Bearer x', accept: '*/*' }),
      list: [{ password: 'a', user: 'b' }],
      map: new Map<string, unknown>([['api_key', 'c']]),
      pairs: new Map<unknown, unknown>([
        ['apiKey', 'd'],
        [1, 'e'],
      ]),
      query: new URLSearchParams('access_token=g&page=2'),
      request: new Request('http://localhost/', { headers: { 'x-api-key': 'h', accept: 'text/html' } }),
      error: Object.assign(new Error('no'), { stack: '', secret: 'i' }),
      usage: { total_tokens: 3 },
    };
    expect(shown(value)).toEqual({
      headers: { accept: '*/*', authorization: '[Redacted]' },
      list: [{ password: '[Redacted]', user: 'b' }],
      map: { api_key: '[Redacted]' },
      pairs: [
        ['apiKey', '[Redacted]'],
        [1, 'e'],
      ],
      query: { access_token: '[Redacted]', page: '2' },
      request: {
        type: 'Request',
        method: 'GET',
        url: 'http://localhost/',
        headers: { accept: 'text/html', 'x-api-key': '[Redacted]' },
      },
      error: { name: 'Error', message: 'no', stack: '', secret: '[Redacted]' },
      usage: { total_tokens: 3 },
    });
  });

  test('are ignored if `keys` is false, and extended if it is a list', () => {
    expect(shown({ password: 'a' }, { keys: false })).toEqual({ password: 'a' });
    expect(shown({ password: 'a', ssn: 1 }, { keys: ['ssn'] })).toEqual({ password: '[Redacted]', ssn: '[Redacted]' });
    expect(shown({ value: 'a' }, { keys: ['value'] })).toEqual({ value: '[Redacted]' });
  });
});

test('paths match the key added to a payload that is not an object', () => {
  const rules = rulesOf({ paths: ['inputs.input', 'outputs.outputs[1]'] }).payload;
  expect(jsonOf('inputs', 'x', rules)).toBe('{"input":"[Redacted]"}');
  expect(jsonOf('outputs', ['x', 'y'], rules)).toBe('{"outputs":["x","[Redacted]"]}');
  expect(jsonOf('inputs', { toJSON: () => 'x' }, rules)).toBe('{"input":"[Redacted]"}');
  expect(jsonOf('outputs', new Proxy(['x', 'y'], {}), rules)).toBe('{"outputs":["x","[Redacted]"]}');
});

describe('patterns', () => {
  const patterns = [/\d{4}/, /x+/i];

  test('mask their matches in every text', () => {
    const value = {
      a: 'pin 1234, or 5678',
      list: ['aXXa'],
      map: new Map([['k', '9999']]),
      url: new URL('http://h/1111'),
    };
    expect(shown(value, { patterns })).toEqual({
      a: 'pin [Redacted], or [Redacted]',
      list: ['a[Redacted]a'],
      map: { k: '[Redacted]' },
      url: 'http://h/[Redacted]',
    });
  });

  test('mask their matches in the text that replaces a value', () => {
    const value = { f: Object.defineProperty(() => {}, 'name', { value: '1234' }), s: Symbol('1234'), big: 1234n };
    Object.defineProperty(value, 'bad', { enumerable: true, get: throws(new Error('1234')) });
    expect(shown(value, { patterns })).toEqual({
      f: '[Function [Redacted]]',
      s: 'Symbol([Redacted])',
      bad: '[Threw: [Redacted]]',
      big: '[Redacted]n',
    });
  });

  test('match the same text each time, with any flags and any `lastIndex`', () => {
    const sticky = /\d{4}/gy;
    sticky.lastIndex = 3;
    const redaction = redact({ patterns: [sticky] });
    const rules = { ...LIMITS, redaction };
    for (let time = 0; time < 3; time++) expect(serialize('x1234y5678', rules)).toBe('"x[Redacted]y[Redacted]"');
    expect(sticky.lastIndex).toBe(3);
    expect(shown('abxc', { patterns: [/x*/] })).toBe('ab[Redacted]c');
  });
});

describe('a secret at the place where text is cut', () => {
  const secret = 'S'.repeat(40);
  const patterns = [/S{40}/];
  const bytes = 1_000;

  test.each([200, 100_000, 1_000_000])('is masked completely, with %i characters to cut', (length) => {
    for (let at = 700; at <= 780; at += 5) {
      for (const text of [
        'a'.repeat(at) + secret + 'b'.repeat(length),
        'a'.repeat(length) + secret + 'b'.repeat(at - 560),
      ]) {
        const result = shown(text, { patterns }, { bytes }) as string;
        expect(result).not.toContain('S');
        if (text.length > 2 * bytes) expect(result).toContain('[Truncated: ');
        expect(result.length).toBeLessThan(bytes + 100);
      }
    }
  });

  test('leaves masked text before and after the cut', () => {
    const text = `${'12 '.repeat(230)}${'a'.repeat(50)}${secret}${'b'.repeat(1_000_000)}`;
    const result = shown(text, { patterns: [/\d\d/, ...patterns], replace: '-----' }, { bytes }) as string;
    expect(result).toMatch(/^(----- ){125}\[Truncated: \d+ characters\]b{250}$/);
  });

  test('is masked completely in an error too', () => {
    for (let at = 49_100; at <= 49_160; at += 5) {
      const error = Object.assign(new Error('a'.repeat(at) + secret + 'b'.repeat(300_000)), { stack: '' });
      expect(errorText(error, redact({ patterns }))).not.toContain('S');
    }
  });
});

test('a value that JSON omits is omitted with its key, with any redaction', () => {
  const value = { S123: { toJSON: () => undefined }, b: 1, list: [{ toJSON: () => undefined }] };
  for (const options of [{ patterns: [/S\d/] }, { paths: ['inputs.x'] }]) {
    expect(shown(value, options)).toEqual({ b: 1, list: [null] });
  }
});

describe('a replacement', () => {
  test('that is text is inserted literally', () => {
    expect(shown({ password: 'a', b: 'x1234' }, { patterns: [/\d+/], replace: '$& $1 ***' })).toEqual({
      password: '$& $1 ***',
      b: 'x$& $1 ***',
    });
  });

  test('that is a function is called once per match, with the match and its path', () => {
    const asked: [string, string][] = [];
    const replace = (found: string, path: string): string => {
      asked.push([found, path]);
      return `<${found.length}>`;
    };
    const value = { user: { email: 'a@b' }, list: ['call 1234', { pin: 77 }], password: 'xyz' };
    expect(shown(value, { paths: ['inputs.user.email', '**.pin'], patterns: [/\d{4}/], replace })).toEqual({
      user: { email: '<3>' },
      list: ['call <4>', { pin: '<2>' }],
      password: '<3>',
    });
    expect(asked).toEqual([
      ['a@b', 'inputs.user.email'],
      ['1234', 'inputs.list.0'],
      ['77', 'inputs.list.1.pin'],
      ['xyz', 'inputs.password'],
    ]);
    expect(shown({ a: { b: 1 } }, { paths: ['inputs.a'], replace })).toEqual({ a: '[Redacted]' });
  });

  test('is not searched again', () => {
    expect(shown('a1', { patterns: [/\d/], replace: (found) => `${found}${found}` })).toBe('a11');
    const text = '{"password":"x","url":"https://a.example/?token=k9Xw27"}';
    expect(shown({ text }, { replace: (found) => `(${found})` })).toEqual({
      text: text.replace('"x"', '"(x)"').replace('k9Xw27', '(k9Xw27)'),
    });
  });

  test.each<[string, () => unknown]>([
    ['throws', throws(new Error('no'))],
    ['throws null', throws(null)],
    ['answers with nothing', () => undefined],
    ['answers with an object', () => ({})],
    ['answers with a promise', () => Promise.resolve('x')],
    ['never answers', () => new Promise(() => {})],
  ])('that %s hides the whole field', (_, replace) => {
    logLines();
    const rules = rulesOf({ patterns: [/\d{4}/], replace: replace as () => string }).payload;
    expect(jsonOf('inputs', { a: 'shown', b: '1234' }, rules)).toBe('{"input":"[Redaction failed]"}');
    expect(jsonOf('inputs', { a: 'shown', b: '123' }, rules)).toBe('{"a":"shown","b":"123"}');
    expect(errorText(new Error('1234'), rules.redaction)).toBe('[Redaction failed]');
  });
});

describe('a run', () => {
  const options: RedactOptions = { patterns: [/S{8}/], paths: ['metadata.user', 'events.*.kwargs.x'] };
  const secret = 'SSSSSSSS';

  test('is masked in all of its fields', () => {
    const { run, record } = makeRun(
      {
        name: `run ${secret}`,
        inputs: { a: secret },
        tags: ['first', `tag ${secret}`],
        metadata: { user: 'ada', note: secret, api_key: 'k' },
      },
      rulesOf(options),
    );
    run.event(`event ${secret}`, { x: 1, y: secret, password: 'p' });
    run.set({ outputs: { b: secret }, tags: [secret], metadata: { more: secret } });
    const cause = Object.assign(new Error(`cause ${secret}`), { stack: `Error: x\n    at ${secret} (a.js:1:1)` });
    run.fail(Object.assign(new Error(`no ${secret}`, { cause }), { stack: '' }));
    const made = record();
    expect(JSON.stringify(made)).not.toContain('SSSS');
    expect(made).toMatchObject({
      name: 'run [Redacted]',
      inputs: { a: '[Redacted]' },
      outputs: { b: '[Redacted]' },
      tags: ['first', 'tag [Redacted]', '[Redacted]'],
      error: 'Error: no [Redacted]\nCaused by: Error: cause [Redacted]\n    at [Redacted] (a.js:1:1)',
      extra: { metadata: { user: '[Redacted]', note: '[Redacted]', api_key: '[Redacted]', more: '[Redacted]' } },
      events: [{ name: 'event [Redacted]', kwargs: { x: '[Redacted]', y: '[Redacted]', password: '[Redacted]' } }],
    });
  });

  test('has masked names of attachments', () => {
    const { run, sink } = makeRun({}, rulesOf({ ...options, replace: 'a.b' }));
    run.attach(`scan ${secret}`, new Uint8Array(1), 'image/png');
    run.end();
    expect(sink.ended[0]?.attachments?.map(({ name }) => name)).toEqual(['scan a_b']);
  });

  test('is masked in thrown values that are not errors', () => {
    const { run, record } = makeRun({}, rulesOf(options));
    run.fail({ password: 'x', text: secret });
    expect(record()?.error).toBe('{"password":"[Redacted]","text":"[Redacted]"}');
  });
});

describe('invalid options', () => {
  test.each<[string, unknown]>([
    ['no object', 'x'],
    ['null', null],
    ['an unknown option', { path: ['inputs.a'] }],
    ['paths that are no list', { paths: 'inputs.a' }],
    ['a path that is none', { paths: ['inputs..a'] }],
    ['a path that begins with no field', { paths: ['user.email'] }],
    ['patterns that are text', { patterns: ['secret'] }],
    ['a replacement that is a number', { replace: 0 }],
    ['names that are no list', { keys: 'password' }],
    ['a name without letters', { keys: ['-'] }],
    [
      'options that cannot be read',
      Object.defineProperty({}, 'paths', { enumerable: true, get: throws(new Error('no')) }),
    ],
  ])('(%s) are reported, and everything is hidden', (_, options) => {
    const lines = logLines();
    const redaction = redact(options as RedactOptions);
    expect(redaction).toBe(hideAll);
    expect(lines).toHaveLength(1);
    expect(lines[0]).toMatch(/^error: redact: .*every payload is hidden$/);
    const { run, record, sink } = makeRun(
      { inputs: { a: 1 }, metadata: { b: 2 }, tags: ['t'] },
      { payload: { ...LIMITS, redaction } },
    );
    run.event('e', { c: 3 });
    run.attach('photo', new Uint8Array(1));
    run.set({ outputs: { d: 4 } });
    run.fail(new Error('no'));
    expect(sink.ended[0]?.attachments).toBeUndefined();
    expect(record()).toMatchObject({
      name: 'work',
      inputs: { input: '[Redacted]' },
      outputs: { outputs: '[Redacted]' },
      tags: ['[Redacted]'],
      error: '[Redacted]',
      events: [{ kwargs: '[Redacted]' }],
      extra: { metadata: { b: '[Redacted]' } },
    });
  });

  test('instead of the result of `redact` hide everything too', () => {
    const lines = logLines();
    expect(redactionOf('configure', { paths: ['inputs.a'] })).toBe(hideAll);
    expect(redactionOf('configure', null)).toBe(hideAll);
    expect(lines).toEqual(
      Array(2).fill('error: configure: expected `redact` to be the result of redact(); every payload is hidden'),
    );
    expect(redactionOf('configure', undefined)).toBe(defaultRedaction());
  });
});

test('tokens of a text are kept, and secrets beside them are masked', () => {
  const exporter = makeSink(rulesOf());
  const stream = function* () {
    yield { token: 'Hel', password: 'x' };
    yield { token: 'lo' };
  };
  expect([...traceable(stream, { exporter })()]).toHaveLength(2);
  traceable(() => ({ token: 'k9Xw27' }), { exporter })();
  expect(exporter.records().map(({ outputs }) => outputs)).toEqual([
    { outputs: [{ token: 'Hel', password: '[Redacted]' }, { token: 'lo' }] },
    { token: '[Redacted]' },
  ]);
});

test('a property of `Object.prototype` is not an option', () => {
  const made = polluted(Object.prototype, { keys: false, replace: 'shown' }, () => redact({ paths: [] }));
  expect(serialize({ password: 'hunter2' }, { ...LIMITS, redaction: made })).toBe('{"password":"[Redacted]"}');
});
