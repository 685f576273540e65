import { expect, test } from 'vitest';
import { withoutCredentials } from '../../src/otel/conventions/url.ts';

test.each([
  ['https://a.example/b?c=d#e', 'https://a.example/b?c=d#e'],
  ['https://ann:pw@a.example/b', 'https://a.example/b'],
  ['https://ann@a.example:8080/@b', 'https://a.example:8080/@b'],
  ['https://ann:p@w@a.example/', 'https://a.example/'],
  ['postgres://ann:pw@db.example/shop', 'postgres://db.example/shop'],
  ['https://a.example/mail?to=b@c.example', 'https://a.example/mail?to=b@c.example'],
  ['/a?api_key=1&page=2', '/a?api_key=REDACTED&page=2'],
  ['https://a.example/a?page=2&key=AIza1', 'https://a.example/a?page=2&key=REDACTED'],
  ['?X-Amz-Signature=1&X-Amz-Date=2', '?X-Amz-Signature=REDACTED&X-Amz-Date=2'],
  ['AWSAccessKeyId=1&Signature=2&sig=3', 'AWSAccessKeyId=REDACTED&Signature=REDACTED&sig=REDACTED'],
  ['https://a.example/#access_token=1&id=2', 'https://a.example/#access_token=REDACTED&id=2'],
  ['/a?page_token=1&sort_key=2&token=', '/a?page_token=1&sort_key=2&token='],
  ['not a url', 'not a url'],
])('of %s there remains %s', (url, left) => {
  expect(withoutCredentials(url)).toBe(left);
});

test.each([[undefined], [7], [['https://a.example']], ['']])('%j is no URL', (value) => {
  expect(withoutCredentials(value)).toBeUndefined();
});
