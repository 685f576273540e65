import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { secretPatterns } from '../../src/index.ts';
import { redact } from '../../src/run/redact.ts';
import { serialize } from '../../src/run/serialize.ts';
import { root } from '../support/folders.ts';
import { LIMITS } from './memory-sink.ts';

const rules = { ...LIMITS, redaction: redact({ patterns: secretPatterns }) };
const shown = (text: string): string => JSON.parse(serialize(text, rules));

/** Digits and letters of no meaning. */
const filler = (length: number): string => 'a1B2c3D4e5'.repeat(30).slice(0, length);
const capitals = (length: number): string => 'ABCD2345'.repeat(3).slice(0, length);

/** In two pieces each, so that what scans this repository finds none. */
const samples: readonly (readonly [name: string, head: string, tail: string])[] = [
  ['OpenAI', 's', `k-proj-${filler(100)}`],
  ['Anthropic', 's', `k-ant-api03-${filler(90)}`],
  ['LangSmith', 'ls', `v2_pt_${filler(32)}_${filler(10)}`],
  ['GitHub', 'gh', `p_${filler(36)}`],
  ['GitHub, fine-grained', 'github', `_pat_${filler(22)}_${filler(59)}`],
  ['GitLab', 'gl', `pat-${filler(20)}`],
  ['AWS', 'AK', `IA${capitals(16)}`],
  ['AWS, for a while', 'AS', `IA${capitals(16)}`],
  ['Slack', 'xo', 'xb-123456789012-123456789012-abcdefabcdef'],
  ['Google', 'AI', `za${filler(35)}`],
  ['Google OAuth', 'GOC', `SPX-${filler(28)}`],
  ['Stripe', 's', `k_live_${filler(24)}`],
  ['npm', 'np', `m_${filler(36)}`],
  ['Hugging Face', 'h', `f_${filler(34)}`],
  ['Groq', 'gs', `k_${filler(52)}`],
  ['xAI', 'xa', `i-${filler(80)}`],
  ['Perplexity', 'pp', `lx-${filler(48)}`],
  ['a JSON Web Token', 'ey', `J${filler(33)}.ey${'J'}${filler(60)}.${filler(43)}`],
  ['a private key', '-----BEGIN RSA PRIV', `ATE KEY-----\nProc-Type: 4\n${filler(200)}\n-----END RSA PRIVATE KEY-----`],
];

describe('secretPatterns', () => {
  test.each(samples)('hide a secret of %s, whole and alone', (_, head, tail) => {
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
    const texts = [...samples.map(([, head, tail]) => head + tail), `a:/${'/b:c'}@d`];
    for (const pattern of secretPatterns) expect(texts.filter((text) => pattern.test(text)).length).toBeGreaterThan(0);
  });

  test.each([
    'a task-list-item-that-is-long-enough-to-look-like-1-key',
    'sk-toggleable-content-and-nothing-else-in-it',
    'risk-assessment-2024-for-the-second-quarter',
    'xoxo',
    'AKIA',
    `MAKIA${capitals(16)}`,
    `AKIA${capitals(16)}X`,
    'eyJ and eyJ.eyJ.x',
    '-----BEGIN CERTIFICATE-----\nabc\n-----END CERTIFICATE-----',
    'https://example.com:8080/a@b',
    'https://example.com/user:name@place',
    'mailto:ada@example.com',
    '12:30@noon',
    `sha256-${filler(44)}`,
    '0198c2f4-7f00-7000-8000-000000000000',
  ])('leave %j alone', (text) => {
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
      ...samples.map(([, head, tail]) => head + tail.slice(0, 12)),
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

interface Hit {
  readonly package: string;
  readonly pattern: string;
  readonly text: string;
}

const explained = JSON.parse(readFileSync(new URL('secret-hits.json', import.meta.url), 'utf8')) as (Hit & {
  readonly why: string;
})[];

test('what they find in the documentation and code of the installed packages is explained', () => {
  const known = new Set(explained.map(nameOf));
  const unknown = new Set<string>();
  for (const [path, text] of filesUnder(join(root, 'node_modules'))) {
    for (const pattern of secretPatterns) {
      for (const [found] of text.matchAll(new RegExp(pattern, 'g'))) {
        const hit = { package: packageOf(path), pattern: pattern.source.slice(0, 20), text: masked(found) };
        if (!known.has(nameOf(hit))) unknown.add(JSON.stringify(hit));
      }
    }
  }
  expect([...unknown]).toEqual([]);
  expect(explained.every(({ why }) => why.length > 10)).toBe(true);
}, 60_000);

function nameOf(hit: Hit): string {
  return [hit.package, hit.pattern, hit.text].join(' ');
}

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
