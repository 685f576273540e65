import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { secretPatterns } from '../../src/index.ts';
import { redact } from '../../src/payload/redact.ts';
import { serialize } from '../../src/payload/serialize.ts';
import { LIMITS } from '../run/memory-sink.ts';
import { root } from '../support/folders.ts';
import { filler, NO_SECRETS, PACKAGE_HITS, SECRETS } from './redaction-cases.ts';

const rules = { ...LIMITS, redaction: redact({ patterns: secretPatterns }) };
const shown = (text: string): string => JSON.parse(serialize(text, rules));

describe('secretPatterns', () => {
  test.each(SECRETS)('hide exactly the secret: %s', (_, head, tail) => {
    expect(shown(`before "${head}${tail}" after`)).toBe('before "[Redacted]" after');
    expect(shown(`${head}${tail}`)).toBe('[Redacted]');
  });

  test('hide user and password of a URL, and leave the URL', () => {
    expect(shown(`see postgres:/${'/ada:love'}lace@db.local:5432/x?y=z and http://b/`)).toBe(
      'see postgres://[Redacted]@db.local:5432/x?y=z and http://b/',
    );
  });

  test('hide a private key whose end is missing, and all that follows it', () => {
    expect(shown(`before -----BEGIN PRIV${'ATE'} KEY-----\n${filler(200)}`)).toBe('before [Redacted]');
  });

  test('each hide something', () => {
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

  test.each(NO_SECRETS)('leave a text unchanged: %s', (_, text) => {
    expect(shown(text)).toBe(text);
  });
});

test('a text of beginnings of secrets is searched in linear time', () => {
  const heads = SECRETS.map(([, head, tail]) => head + tail.slice(0, 12)).concat(
    ':/' + '/a:',
    `ey${'J'}${filler(12)}.`,
  );
  for (const head of heads) {
    for (const text of [head, `${head} `, `${head}-`, `${head}.`]) {
      // A search in quadratic time would take longer than the time limit of a test.
      const long = text.repeat(Math.ceil(50_000 / text.length));
      for (const pattern of secretPatterns) long.replaceAll(new RegExp(pattern, 'g'), '');
    }
  }
});

test('every match in the documentation and code of the installed packages is a known placeholder', () => {
  const known = new Set(PACKAGE_HITS.map((hit) => hit.join(' ')));
  const unknown = new Set<string>();
  for (const [path, text] of filesUnder(join(root, 'node_modules'))) {
    for (const pattern of secretPatterns) {
      for (const [found] of text.matchAll(new RegExp(pattern, `${pattern.flags}g`))) {
        const hit = [packageOf(path), pattern.source.slice(0, 20), masked(found)];
        if (!known.has(hit.join(' '))) unknown.add(JSON.stringify(hit));
      }
    }
  }
  expect([...unknown]).toEqual([]);
});

/** Identifies a match without showing a secret. */
function masked(found: string): string {
  return `${found.slice(0, 4)}…${found.length}`;
}

/** Packages that are large and consist of tables or of compiled code, and copies of scripts in another module format. */
const LEFT_OUT = /^(typescript|js-tiktoken|playwright-core|axe-core|rollup|\.cache|cjs)$/;

function packageOf(path: string): string {
  const [scope = '', name = ''] = path.slice(path.lastIndexOf('node_modules/') + 13).split('/');
  return scope.startsWith('@') ? `${scope}/${name}` : scope;
}

function* filesUnder(folder: string): Iterable<[path: string, text: string]> {
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    const path = `${folder}/${entry.name}`;
    if (LEFT_OUT.test(entry.name)) continue;
    if (entry.isDirectory()) yield* filesUnder(path);
    else if (entry.isFile() && /\.(md|js)$/i.test(entry.name)) yield [path, readFileSync(path, 'utf8')];
  }
}
