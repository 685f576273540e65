import { expect, test } from 'vitest';
import { serviceAddress } from '../../src/clients/service-address.ts';

const NO_KEY = { hasKey: false, allowInsecure: undefined };
const KEY = { hasKey: true, allowInsecure: undefined };

test.each([
  ['https://host', 'https://host/'],
  ['https://host:8443/api/v1/', 'https://host:8443/api/v1/'],
  ['http://127.0.0.1:4777', 'http://127.0.0.1:4777/'],
  ['http://localhost:1/x', 'http://localhost:1/x'],
  ['http://[::1]:1', 'http://[::1]:1/'],
])('%s is an address to which a key may go', (given, href) => {
  expect(serviceAddress('url', given, KEY).href).toBe(href);
  expect(serviceAddress('url', new URL(given), KEY).href).toBe(href);
});

test.each<[unknown, string]>([
  ['', 'cannot be read'],
  ['host', 'cannot be read'],
  ['//host', 'cannot be read'],
  ['/path', 'cannot be read'],
  [undefined, 'is missing'],
  [null, 'cannot be read'],
  [5, 'cannot be read'],
  [{ href: 'https://host' }, 'cannot be read'],
  ['ftp://host', 'begins with neither'],
  ['file:///etc/passwd', 'begins with neither'],
  ['javascript:alert(1)', 'begins with neither'],
  ['https://user@host', 'holds a user or password'],
  ['https://:pass-word@host', 'holds a user or password'],
  ['https://host/?key=pass-word', 'has a query or fragment'],
  ['https://host/#pass-word', 'has a query or fragment'],
])('%j is none: it %s', (given, problem) => {
  const making = () => serviceAddress('baseUrl', given, NO_KEY);
  expect(making).toThrow(
    `Expected \`baseUrl\` to be an http or https address, such as https://host/path, got one that ${problem}`,
  );
  expect(making).toThrow(expect.objectContaining({ code: 'RUNSPAN_INVALID_OPTION' }));
  expect(making).not.toThrow('pass-word');
});

test('a key goes over plain HTTP to another machine only where that is allowed [security 5]', () => {
  const address = 'http://host.test/api';
  expect(() => serviceAddress('url', address, KEY)).toThrow('a key is not sent over plain HTTP to another machine');
  expect(() => serviceAddress('url', address, { hasKey: true, allowInsecure: false })).toThrow('allowInsecure');
  expect(serviceAddress('url', address, { hasKey: true, allowInsecure: true }).host).toBe('host.test');
  expect(serviceAddress('url', address, NO_KEY).host).toBe('host.test');
});
