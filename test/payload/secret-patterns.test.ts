import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { secretPatterns } from '#src/index.ts';
import { redact } from '#src/payload/redaction/redact.ts';
import { serialize } from '#src/payload/serialize.ts';
import { filesUnder, read } from '../package/repository.ts';
import { LIMITS } from '../run/memory-sink.ts';
import { cases } from '../support/campaign.ts';
import { filler, NO_SECRETS, SECRETS } from './redaction-cases.ts';

const rules = { ...LIMITS, redaction: redact({ patterns: secretPatterns }) };
const shown = (text: string): string => JSON.parse(serialize(text, rules));

/** Texts with a secret. RFC 7617 defines `Basic`, and Slack's documentation of incoming webhooks the address. */
const FORMS: readonly ((secret: string) => string)[] = [
  (secret) => `-H 'Proxy-Authorization: Basic ${btoa(secret)}'`,
  (secret) => `basic ${btoa(`ada:${secret}`)}`,
  (secret) => `https://hooks.slack.com/services/T0123ABCD/B0123ABCD/${secret.replaceAll(/\W/g, '')}0123456789`,
  (secret) => `the password=${secret}`,
  (secret) => `api_key: ${secret},`,
  (secret) => `token = "${secret}"`,
  (secret) => `const accessToken: '${secret}'`,
  (secret) => `{"client_secret": "${secret}"}`,
  (secret) => `export SOME_API_KEY=${secret}`,
  (secret) => `DB_PASSWORD="${secret.replaceAll(/\d/g, ' ')}"`,
  (secret) => `DB_TOKEN='${secret}'`,
];

describe('secretPatterns', () => {
  test('hide a secret in each form, and keep the text around it', () => {
    // Base64 without a digit and without padding may be a word.
    const isFound = (text: string): boolean => /[A-Z]/.test(text) && /[\d=]/.test(text);
    const secret = fc
      .stringMatching(/^[A-Za-z][\w.~+#!-]{6,80}[A-Za-z]\d$/)
      .filter((text) => isFound(btoa(text)) && isFound(btoa(`ada:${text}`)));
    const property = fc.property(secret, fc.constantFrom(...FORMS), (given, form) => {
      const [found, before, after] =
        /^(before .*)\[Redacted\](.* after)$/.exec(shown(`before ${form(given)} after`)) ?? [];
      expect(found).toBeDefined();
      // The rest of the text does not depend on the secret.
      const other = shown(`before ${form('Zz34567890')} after`);
      expect(`${before}[Redacted]${after}`).toBe(other);
    });
    fc.assert(property, { numRuns: cases(2_000) });
  });

  test('of the pages in docs/, hide only the secrets that they show as examples', () => {
    const hits = filesUnder('docs', '.md').flatMap((page) => {
      const text = read(`docs/${page}`);
      return secretPatterns.flatMap((pattern) => text.match(new RegExp(pattern, `${pattern.flags}g`)) ?? []);
    });
    expect(hits.sort()).toEqual(['=a1b2c3#top', ...Array(3).fill('runspan:secret'), 'user:password']);
  });

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
      ...FORMS.map((form) => form('k9Xw27ab')),
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
