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

describe('the time that a secret pattern takes', () => {
  test.each(secretPatterns.map((pattern) => pattern.source))('is bounded: %s', (source) => {
    const bare = source.replace(/\\./g, 'x').replace(/\[[^\]]*\]/g, 'c');
    // A repetition without an end, or one inside of another, is what makes time grow faster than text.
    expect(bare).not.toMatch(/[*+]|\{\d+,\}/);
    for (const [, inside = ''] of bare.matchAll(/\((?!\?<?[=!])(?:\?:)?([^()]*)\)(?:\{|\?)/g)) {
      expect(inside.includes('{') && !/^-----END/.test(inside)).toBe(false);
    }
  });

  test('is over for a million characters of beginnings', () => {
    const heads = [
      ...SECRETS.map(([, head, tail]) => head + tail.slice(0, 12)),
      ':/' + '/a:',
      `ey${'J'}${filler(12)}.`,
    ];
    for (const head of heads) {
      for (const text of [head, `${head} `, `${head}-`, `${head}.`]) {
        const long = text.repeat(Math.ceil(1_000_000 / text.length));
        for (const pattern of secretPatterns)
          expect(long.replaceAll(new RegExp(pattern, 'g'), '').length).toBeLessThan(2_000_000);
      }
    }
  }, 60_000);
});

test('what they find in the documentation and code of the installed packages is explained', () => {
  const known = new Set(PACKAGE_HITS.map(([name, pattern, text]) => [name, pattern, text].join(' ')));
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
}, 60_000);

/** Enough to know it again, and too little to be a secret. */
function masked(found: string): string {
  return `${found.slice(0, 4)}…${found.length}`;
}

function packageOf(path: string): string {
  const [scope = '', name = ''] = path.slice(path.lastIndexOf('node_modules/') + 13).split('/');
  return scope.startsWith('@') ? `${scope}/${name}` : scope;
}

function* filesUnder(folder: string): Iterable<[path: string, text: string]> {
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    const path = `${folder}/${entry.name}`;
    if (entry.isDirectory() && entry.name !== '.cache') yield* filesUnder(path);
    else if (entry.isFile() && /\.(md|js|mjs|cjs)$/i.test(entry.name)) yield [path, readFileSync(path, 'utf8')];
  }
}
