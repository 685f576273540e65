import { expect, test } from 'vitest';
import { areHeaders, mergedHeaders, secretsIn } from '../../src/clients/headers.ts';

test('of one name in several sets the last is taken, whatever its letters, and null leaves it out', () => {
  const merged = mergedHeaders({ Accept: 'a', 'X-A': '1' }, undefined, { accept: 'b', 'x-b': '2' }, { 'x-A': null });
  expect(merged).toEqual({ accept: 'b', 'x-b': '2' });
  expect(mergedHeaders({ 'x-a': null }, { 'x-a': '1' })).toEqual({ 'x-a': '1' });
});

test.each<[unknown]>([
  [{}],
  [{ 'X-Any': 'text' }],
  [{ 'x-a': '' }],
  [{ 'x-a': 'grün\t!' }],
  [Object.assign(Object.create(null), { a: 'b' })],
])('headers can be %j', (value) => {
  expect([areHeaders(value, false), areHeaders(value, true)]).toEqual([true, true]);
});

test.each<[unknown]>([
  [undefined],
  [null],
  ['a: b'],
  [[['a', 'b']]],
  [new Headers({ a: 'b' })],
  [new Map([['a', 'b']])],
  [{ a: 1 }],
  [{ a: undefined }],
  [{ a: ['b'] }],
  [{ '': 'b' }],
  [{ 'a b': 'c' }],
  [{ 'a:': 'c' }],
  [{ grün: 'c' }],
  [{ a: 'b\r\nX-Injected: 1' }],
  [{ a: 'b\nc' }],
  [{ a: '\0' }],
  [{ a: '\x7f' }],
  [{ a: 'ā' }],
  [{ 'Content-Length': '1' }],
  [{ 'transfer-encoding': 'chunked' }],
  [{ Connection: 'close' }],
  [{ expect: '100-continue' }],
])('headers cannot be %j', (value) => {
  expect([areHeaders(value, false), areHeaders(value, true)]).toEqual([false, false]);
});

test('a header may be null where it leaves one out', () => {
  expect([areHeaders({ a: null }, true), areHeaders({ a: null }, false)]).toEqual([true, false]);
});

test.each<[Parameters<typeof secretsIn>[0], string[]]>([
  [undefined, []],
  [{ accept: 'text', 'x-request-id': '12345' }, []],
  [
    { 'X-Api-Key': ' key-1 ', AUTHORIZATION: 'Bearer key-2', 'proxy-authorization': 'basic  dTpw' },
    ['key-1', 'key-2', 'dTpw'],
  ],
  [{ cookie: 'a=b; c=d', 'x-auth-token': 'key-3' }, ['a=b; c=d', 'key-3']],
  [{ authorization: null }, []],
])('the secrets in %j are %j', (headers, secrets) => {
  expect(secretsIn(headers)).toEqual(secrets);
});
