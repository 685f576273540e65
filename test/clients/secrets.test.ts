import { expect, test } from 'vitest';
import { Secrets } from '#src/clients/secrets.ts';

const KEY = 'k"y/ü+\n1 ';

test.each<[string, string]>([
  ['as plain text', KEY],
  ['in JSON', String.raw`k\"y/ü+\n1 `],
  ['in JSON of ASCII', String.raw`k\"y/\u00fc+\n1 `],
  ['in JSON within JSON', String.raw`k\\\"y/ü+\\n1 `],
  ['in JSON of ASCII within JSON', String.raw`k\\\"y/\\u00fc+\\n1 `],
  ['in a URL', 'k%22y%2F%C3%BC%2B%0A1%20'],
  ['in a form', 'k%22y%2F%C3%BC%2B%0A1+'],
])('a secret is masked %s', (_, text) => {
  expect(new Secrets([KEY]).masked(`a ${text} b ${text}`)).toBe('a [secret] b [secret]');
});

test.each(['a', 'ab', 'abc'])('a secret of any length is masked in base64: key-%s', (end) => {
  const secrets = new Secrets([`key-${end}`]);
  for (const encoding of ['base64', 'base64url'] as const) {
    const masked = secrets.masked(`<${Buffer.from(`key-${end}`).toString(encoding)}>`);
    expect(masked).toMatch(/^<\[secret\].?={0,2}>$/);
  }
});

test.each(['', 'abc', 'true', 'prod', 'PRODUCT', '8080', '1234567'])('%j is a setting, not a secret', (text) => {
  expect(new Secrets([text]).masked(`a ${text}`)).toBe(`a ${text}`);
});

test.each(['a1b2', 'abcdefgh', '12345678', 'pass!'])('%j is masked as a secret', (text) => {
  expect(new Secrets([text]).masked(`a ${text}`)).toBe('a [secret]');
});

test('the longer of two secrets is masked completely, in any order', () => {
  for (const given of [
    ['ab-d', 'ab-defgh'],
    ['ab-defgh', 'ab-d'],
  ]) {
    expect(new Secrets(given).masked('ab-defgh ab-d')).toBe('[secret] [secret]');
  }
  expect(new Secrets(['$&$1', '.*.*']).masked('a $&$1 .*.* b')).toBe('a [secret] [secret] b');
});

test('a secret with a lone surrogate is masked, and an empty text is no secret', () => {
  expect(new Secrets(['key\ud800']).masked('a key\ud800')).toBe('a [secret]');
  expect(new Secrets(['']).masked('abc')).toBe('abc');
});

test('a JSON body is parsed before it is masked, because JSON has several escapes', () => {
  const secrets = new Secrets(['key-1', '12345678']);
  const body = String.raw`{"a":["\u006b\u0065y-1"],"\u006bey-1":{"b":12345678,"c":1,"d":null,"e":true},"__proto__":"key-1"}`;
  expect(secrets.maskedBody(body)).toBe(
    '{"a":["[secret]"],"[secret]":{"b":"[secret]","c":1,"d":null,"e":true},"__proto__":"[secret]"}',
  );
});

test('a body that is not JSON or nested too deeply is masked as text', () => {
  const secrets = new Secrets(['key-1']);
  expect(secrets.maskedBody('<p>key-1</p>')).toBe('<p>[secret]</p>');
  const deep = `${'['.repeat(100_000)}"key-1"${']'.repeat(100_000)}`;
  expect(secrets.maskedBody(deep)).not.toContain('key-1');
  expect(new Secrets([]).maskedBody('{ "a" : 1 }')).toBe('{ "a" : 1 }');
});
