import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { defaultLimits } from '#src/config/limits.ts';
import { traceable } from '#src/instrument/traceable.ts';
import { errorText } from '#src/payload/errors.ts';
import { redact } from '#src/payload/redaction/redact.ts';
import { serialize } from '#src/payload/serialize.ts';
import { payloadRules } from '#src/payload/truncate.ts';
import { anything, revokedProxy } from '../base/hostile.ts';
import { record } from '../instrument/recorder.ts';
import { root } from '../support/folders.ts';

/** An error with a stack as V8 writes it, without the paths of this machine. */
function makeError(message: string, fields: object = {}): Error {
  const error = Object.assign(new Error(message), fields);
  error.stack = `Error: ${message}\n    at work (app.js:1:2)\n    at app.js:3:4`;
  return error;
}

describe('the text of an error', () => {
  test('contains name and message on the first line, then the stack', () => {
    expect(errorText(makeError('no'))).toBe('Error: no\n    at work (app.js:1:2)\n    at app.js:3:4');
  });

  test('contains the current name and message, even if they changed after the stack was captured', () => {
    expect(errorText(makeError('timeout', { name: 'HttpError', message: 'no answer' }))).toBe(
      'HttpError: no answer\n    at work (app.js:1:2)\n    at app.js:3:4',
    );
  });

  class FooError extends Error {}
  class BarError extends FooError {}
  const named = Object.defineProperty(new FooError('no'), 'constructor', {
    get: () => {
      throw new Error('hostile');
    },
  });

  // As in the error classes of OpenAI's and Anthropic's clients, `name` is inherited from Error.
  test.each<[string, Error, string]>([
    ['of its class where the name is that of every error', new FooError('no'), 'FooError: no'],
    ['of its innermost class', new BarError('no'), 'BarError: no'],
    ['that it has itself, though it is `Error`', Object.assign(new FooError('no'), { name: 'Error' }), 'Error: no'],
    ['that its class inherits from another one', new (class extends TypeError {})('no'), 'TypeError: no'],
    ['of every error where the class has none', new (class extends Error {})('no'), 'Error: no'],
    ['of every error where the class cannot be read', named, 'Error: no'],
  ])('contains the name %s', (_, error, head) => {
    expect(errorText(error).split('\n')[0]).toBe(head);
  });

  test.each<[string, Error, string]>([
    ['without a message is its name', makeError('', { stack: '' }), 'Error'],
    ['without a name is its message', makeError('no', { name: '' }), 'no'],
    ['keeps every line of the message', makeError('one\ntwo'), 'Error: one\ntwo'],
  ])('%s', (_, error, head) => {
    expect(errorText(error)).toBe(`${head}\n    at work (app.js:1:2)\n    at app.js:3:4`);
  });

  test('hides values under secret names in a message that is JSON, and in the message of a cause', () => {
    const body = '{"password":"hunter2hunter2"}';
    const error = new Error(body, { cause: new Error(body) });
    expect(errorText(error, redact())).not.toContain('hunter2');
    expect(serialize({ error }, payloadRules(defaultLimits, redact()))).not.toContain('hunter2');
  });

  test('has the frames of the application and none of this package, also in a cause', () => {
    const recorder = record();
    const make = traceable(() => new Error('inner'), { name: 'make' });
    const fail = traceable(() => {
      const error = new Error('outer', { cause: make() });
      error.stack += `\n    at f (/copy${root}src/a.ts:1:2)`;
      throw error;
    });
    expect(fail).toThrow(expect.objectContaining({ stack: expect.stringContaining(`${root}src/instrument/`) }));
    const [, text, cause] = /^(.*?)\nCaused by: (.*)/s.exec(recorder.runs[0]?.error ?? '') ?? [];
    for (const frames of [text, cause]) expect(frames).toContain('errors.test.ts:');
    expect(text).toContain('at f (/copy');
    for (const frames of [text?.replace('/copy', ''), cause]) expect(frames).not.toContain('src/instrument');
  });

  test('without a stack is its first line', () => {
    expect(errorText(Object.assign(new Error('no'), { stack: undefined }))).toBe('Error: no');
    expect(errorText(Object.assign(new Error('no'), { stack: 'Error: no' }))).toBe('Error: no');
    expect(errorText(Object.assign(new Error('no'), { stack: Object.create(null) }))).toBe('Error: no');
  });

  test('continues with each cause in the same form', () => {
    const inner = Object.assign(new TypeError('inner'), { stack: 'TypeError: inner\n    at inner.js:1:1' });
    const middle = makeError('middle', { cause: inner });
    expect(errorText(makeError('outer', { cause: middle }))).toBe(
      'Error: outer\n    at work (app.js:1:2)\n    at app.js:3:4\n' +
        'Caused by: Error: middle\n    at work (app.js:1:2)\n    at app.js:3:4\n' +
        'Caused by: TypeError: inner\n    at inner.js:1:1',
    );
  });

  test('contains a cause that is not an error', () => {
    expect(errorText(Object.assign(new Error('outer', { cause: 'disk full' }), { stack: '' }))).toBe(
      'Error: outer\nCaused by: disk full',
    );
    expect(errorText(Object.assign(new Error('outer', { cause: null }), { stack: '' }))).toBe(
      'Error: outer\nCaused by: null',
    );
  });

  test.each([
    [7, 7],
    [8, 8],
    [9, 8],
  ])('with %i causes contains %i', (count, expected) => {
    let error = new Error('innermost');
    for (let index = 0; index < count; index++) error = new Error('outer', { cause: error });
    expect(errorText(error).match(/^Caused by: /gm)).toHaveLength(expected);
  });

  test('is limited to 65 536 characters, causes included', () => {
    const causes = [1, 2, 3].reduce<Error>((cause) => makeError('x'.repeat(30_000), { cause }), new Error('innermost'));
    expect(errorText(causes)).toMatch(/\[Truncated: \d+ characters\]/);
    expect(errorText(causes).length).toBeLessThan(65_600);
  });

  test('ends if the causes are circular', () => {
    const error = new Error('no');
    error.cause = error;
    expect(errorText(error).match(/^Caused by: Error: no$/gm)).toHaveLength(8);
  });

  test('takes linear time for a message of a hundred thousand empty lines', () => {
    const message = '\n'.repeat(100_000);
    expect(errorText(makeError(message))).toMatch(
      /^Error: \n+\[Truncated: \d+ characters\]\n+ {4}at work .*\n {4}at app.js:3:4$/,
    );
  }, 5_000);
});

test.each([
  [65_535, ''],
  [65_536, ''],
  [65_537, '[Truncated: 1 characters]'],
])('a text that is too long at %i characters is cut by %j', (length, marker) => {
  const text = errorText('a'.repeat(length - 1).concat('z'));
  expect(text.includes('Truncated')).toBe(marker !== '');
  expect(text).toContain(marker);
  expect(text.endsWith('az')).toBe(true);
});

describe('the text of another thrown value', () => {
  test.each<[string, unknown, string]>([
    ['text', 'disk full', 'disk full'],
    ['a number', 404, '404'],
    ['undefined', undefined, 'undefined'],
    ['null', null, 'null'],
    ['an object', { code: 1, message: 'no' }, '{"code":1,"message":"no"}'],
    ['an object with a cause', { cause: 'unread' }, '{"cause":"unread"}'],
    ['a symbol', Symbol('mark'), 'Symbol(mark)'],
    ['an object without a prototype', Object.create(null), '{}'],
  ])('is its own text: %s', (_, thrown, expected) => {
    expect(errorText(thrown)).toBe(expected);
  });

  test('is a fixed text if nothing can be read', () => {
    expect(errorText(revokedProxy())).toBe('[an error that cannot be read]');
  });
});

test('any thrown value and any cause has a text', () => {
  fc.assert(
    fc.property(anything, (make) => {
      expect(errorText(make())).toEqual(expect.any(String));
      expect(errorText(new Error('outer', { cause: make() }))).toMatch(/^Error: outer\n/);
    }),
    { numRuns: 1_000 },
  );
});
