import { describe, expect, test } from 'vitest';
import { secretPatterns } from '#src/index.ts';
import { redact } from '#src/payload/redaction/redact.ts';
import { serialize } from '#src/payload/serialize.ts';
import { LIMITS } from '../run/memory-sink.ts';
import { filler, NO_SECRETS, SECRETS } from './redaction-cases.ts';

const rules = { ...LIMITS, redaction: redact({ patterns: secretPatterns }) };
const shown = (text: string): string => JSON.parse(serialize(text, rules));

describe('secretPatterns', () => {
  test.each(SECRETS)('hide exactly the secret: %s', (_, head, tail) => {
    expect(shown(`before "${head}${tail}" after`)).toBe('before "[Redacted]" after');
    expect(shown(`${head}${tail}`)).toBe('[Redacted]');
  });

  test('hide user and password of a URL, and keep the URL', () => {
    expect(shown(`see postgres:/${'/ada:love'}lace@db.local:5432/x?y=z and http://b/`)).toBe(
      'see postgres://[Redacted]@db.local:5432/x?y=z and http://b/',
    );
  });

  test('hide a private key without an end, and all text after it', () => {
    expect(shown(`before -----BEGIN PRIV${'ATE'} KEY-----\n${filler(200)}`)).toBe('before [Redacted]');
  });

  test('each match a credential', () => {
    const texts = [
      ...SECRETS.map(([, head, tail]) => head + tail),
      `a:/${'/b:c'}@d`,
      `Authorization: Basic ${filler(12)}`,
    ];
    for (const pattern of secretPatterns) expect(texts.filter((text) => pattern.test(text)).length).toBeGreaterThan(0);
  });

  test('hide the credentials of an Authorization header in text, but not the name of the header', () => {
    const text = `curl -H "Authorization: Basic ${'QWRh'}TG92ZQ==" -H 'authorization: token ${filler(12)}' https://a.example`;
    expect(shown(text)).toBe(`curl -H "Authorization: [Redacted]" -H 'authorization: [Redacted]' https://a.example`);
  });

  test.each(NO_SECRETS)('keep a text unchanged: %s', (_, text) => {
    expect(shown(text)).toBe(text);
  });
});
