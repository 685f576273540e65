import { expect, test } from 'vitest';
import { checkedOptions } from '../../src/base/options.ts';
import { callChecks, callOptionsOf, clientChecks } from '../../src/clients/client-options.ts';

const KEY = 'ls-secret-key';
const clientOptions = (options: unknown) => checkedOptions('the options', options, clientChecks);
const callOptions = (options: unknown) => checkedOptions('the options', options, callChecks);

test('every option holds at its bounds, and what is undefined is not there', () => {
  const given = {
    apiKey: '!~',
    headers: { 'x-a': 'b' },
    connectTimeoutMs: 1,
    allowInsecure: false,
    dispatcher: { dispatch: () => true },
    hooks: { onRequest: () => {}, onRetry: undefined },
  };
  for (const [timeoutMs, maxRetries] of [
    [1, 0],
    [2 ** 31 - 1, 100],
  ]) {
    const options = { ...given, timeoutMs, maxRetries };
    expect({ ...clientOptions({ ...options, apiKey: undefined }) }).toEqual({ ...options, apiKey: undefined });
    expect({ ...clientOptions(options) }).toEqual(options);
  }
  const signal = new AbortController().signal;
  const call = { signal, timeoutMs: 1, maxRetries: 0, headers: { 'x-a': null, b: 'c' } };
  expect({ ...callOptions(call) }).toEqual(call);
});

test.each<[string, unknown, string]>([
  ['apiKey', '', 'a text that is not empty, of printable ASCII'],
  ['apiKey', '  ', 'a text that is not empty, of printable ASCII'],
  ['apiKey', `${KEY}\nx-other: 1`, 'a text that is not empty, of printable ASCII'],
  ['apiKey', `${KEY}ü`, 'a text that is not empty, of printable ASCII'],
  ['apiKey', 5, 'a text that is not empty, of printable ASCII'],
  ['apiKey', null, 'a text that is not empty, of printable ASCII'],
  ['headers', [], 'an object of names and texts that headers can hold'],
  ['headers', new Headers(), 'an object of names and texts that headers can hold'],
  ['headers', { authorization: `${KEY}\n` }, 'an object of names and texts that headers can hold'],
  ['headers', { a: null }, 'an object of names and texts that headers can hold'],
  ['timeoutMs', 0, 'a whole number from 1 to 2147483647'],
  ['timeoutMs', 2 ** 31, 'a whole number from 1 to 2147483647'],
  ['timeoutMs', 1.5, 'a whole number from 1 to 2147483647'],
  ['timeoutMs', '1', 'a whole number from 1 to 2147483647'],
  ['timeoutMs', Number.NaN, 'a whole number from 1 to 2147483647'],
  ['timeoutMs', Number.POSITIVE_INFINITY, 'a whole number from 1 to 2147483647'],
  ['connectTimeoutMs', 0, 'a whole number from 1 to 2147483647'],
  ['connectTimeoutMs', 2 ** 31, 'a whole number from 1 to 2147483647'],
  ['maxRetries', -1, 'a whole number from 0 to 100'],
  ['maxRetries', 101, 'a whole number from 0 to 100'],
  ['maxRetries', true, 'a whole number from 0 to 100'],
  ['allowInsecure', 'yes', 'true or false'],
  ['dispatcher', {}, 'an undici Dispatcher'],
  ['dispatcher', null, 'an undici Dispatcher'],
  ['hooks', () => {}, 'an object of functions'],
  ['hooks', [], 'an object of functions'],
  ['hooks', { onRequest: 'log' }, 'an object of functions'],
  ['hooks', { onrequest: () => {} }, 'an object of functions'],
])('a client refuses the option %s: %j', (name, value, expected) => {
  const making = () => clientOptions({ [name]: value });
  expect(making).toThrow(`Expected \`${name}\` to be ${expected}, got `);
  expect(making).toThrow(expect.objectContaining({ code: 'RUNSPAN_INVALID_OPTION' }));
  expect(making).not.toThrow(KEY);
});

test.each<[string, unknown]>([
  ['signal', {}],
  ['signal', new AbortController()],
  ['timeoutMs', 0],
  ['maxRetries', -1],
  ['headers', { a: 1 }],
  ['apiKey', KEY],
  ['retries', 1],
])('a call refuses the option %s: %j', (name, value) => {
  expect(() => callOptions({ [name]: value })).toThrow(expect.objectContaining({ code: 'RUNSPAN_INVALID_OPTION' }));
});

test.each([[null], [undefined], [KEY], [[]]])('options are an object, not %j', (value) => {
  expect(() => clientOptions(value)).toThrow('Expected the options to be an object');
  expect(() => clientOptions(value)).not.toThrow(KEY);
});

test("of options that hold more a call's are taken, and only those that are there", () => {
  const more = { timeoutMs: 1, method: 'GET', maxRetries: undefined } as object;
  expect(callOptionsOf(more)).toStrictEqual({ timeoutMs: 1 });
});
