import { expect, test } from 'vitest';
import { pathOf, queryText } from '../../src/clients/call.ts';

test.each<[string[], string]>([
  [[], ''],
  [['v2', 'deployments'], '/v2/deployments'],
  [[''], '/'],
  [['.'], '/%2E'],
  [['..'], '/%2E%2E'],
  [['...'], '/...'],
  [['..', '..', 'keys'], '/%2E%2E/%2E%2E/keys'],
  [['../keys'], '/..%2Fkeys'],
  [['%2e%2e'], '/%252e%252e'],
  [['.%2e'], '/.%252e'],
  [['a/b', 'c\\d'], '/a%2Fb/c%5Cd'],
  [['a b+c'], '/a%20b%2Bc'],
  [['a?b#c'], '/a%3Fb%23c'],
  [['a;b=c,d'], '/a%3Bb%3Dc%2Cd'],
  [['grün', '漢', '😀'], '/gr%C3%BCn/%E6%BC%A2/%F0%9F%98%80'],
  [['\ud800'], '/%EF%BF%BD'],
  [['a\r\nHost: b\0'], '/a%0D%0AHost%3A%20b%00'],
])('the segments %j make the path %s', (segments, path) => {
  expect(pathOf(...segments)).toBe(path);
});

test.each([['..'], ['.'], ['%2e%2e'], ['../..'], ['a/../../b'], ['\\..\\']])(
  'no id leads an address out of its path: %s',
  (id) => {
    const { pathname } = new URL(`https://host/api/v2${pathOf('deployments', id)}`);
    // The reading of a URL takes dots that are encoded for dots; what is sent is the path as it was made.
    expect(pathOf('deployments', id)).toMatch(/^\/deployments\/[^/\\]+$/);
    expect(pathname.includes('keys')).toBe(false);
  },
);

test.each<[Parameters<typeof queryText>[0], string]>([
  [undefined, ''],
  [{}, ''],
  [{ a: undefined }, ''],
  [{ a: [] }, ''],
  [{ limit: 20, offset: 0 }, '?limit=20&offset=0'],
  [{ flag: false, text: '' }, '?flag=false&text='],
  [{ id: ['a', 'b'] }, '?id=a&id=b'],
  [{ 'a&b': 'c=d&e' }, '?a%26b=c%3Dd%26e'],
  [{ a: 'b c+d', u: 'ü' }, '?a=b%20c%2Bd&u=%C3%BC'],
  [{ a: '\ud800' }, '?a=%EF%BF%BD'],
])('the query %j is %s', (query, text) => {
  expect(queryText(query)).toBe(text);
});
