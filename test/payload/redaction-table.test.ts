import { describe, expect, test } from 'vitest';
import { traceable } from '#src/index.ts';
import { record } from '../instrument/recorder.ts';
import { collectGarbage } from '../support/garbage.ts';
import { KEPT, MASKED } from './redaction-cases.ts';

const MASK = '[Redacted]';

function recorded(value: unknown): unknown {
  const recorder = record();
  traceable((_: unknown) => undefined, { name: 'work' })({ value });
  return recorder.runs[0]?.inputs?.value;
}

describe('by default', () => {
  test('each row of the tables has a unique source', () => {
    for (const rows of [MASKED, KEPT]) expect(new Set(rows.map(([source]) => source)).size).toBe(rows.length);
  });

  test.each(MASKED)('only the secret is masked: %s', (_, value, secret) => {
    const shown = JSON.stringify(recorded(value));
    const visible = JSON.stringify(secret).slice(1, -1);
    expect(shown).toContain(MASK);
    for (const spelling of [secret, visible]) expect(shown).not.toContain(spelling);
    const plain = [value, ...Object.values(value as object)].every((item) => isPlain(item));
    if (!plain) return;
    const whole = secret.startsWith('[') || secret.startsWith('{');
    const expected = whole
      ? JSON.stringify(value).replaceAll(secret, JSON.stringify(MASK))
      : JSON.stringify(value).replaceAll(visible, MASK).replaceAll('pass\\\\u0077ord', 'password');
    expect(JSON.parse(shown)).toEqual(JSON.parse(expected.replaceAll('\\\\/', '/')));
  });

  test.each(KEPT)('the value is recorded unchanged: %s', (_, value) => {
    expect(recorded(value)).toEqual(value);
  });

  test('in a chunk, text is kept only under `token` and `tokens`', () => {
    const recorder = record();
    const secret = 'k9Xw27abQ4';
    const names = 'password, access_token, client_secret, secrets, pass, pwd, pw, signature, session, cookie, auth';
    const secrets = Object.fromEntries(names.split(', ').map((name) => [name, secret]));
    const chunk = { token: secret, tokens: [secret] };
    const stream = traceable(function* () {
      yield { ...chunk, ...secrets };
    });
    for (const _ of stream());
    const masks = Object.fromEntries(Object.keys(secrets).map((name) => [name, MASK]));
    expect(recorder.runs[0]?.outputs).toEqual({ outputs: [{ ...chunk, ...masks }] });
  });

  test('names found in JSON text do not retain the text', () => {
    const recorder = record();
    const work = traceable((_: string) => undefined, { name: 'work' });
    const before = process.memoryUsage().heapUsed;
    for (let index = 0; index < 100; index++) {
      const text = Buffer.from(`{"prose":"${'a b '.repeat(50_000)}","name_${index}_bearer_token":"ok"}`);
      work(text.toString());
      recorder.clear();
    }
    collectGarbage();
    // The texts total 20 MB.
    expect(process.memoryUsage().heapUsed - before).toBeLessThan(5_000_000);
  });
});

function isPlain(value: unknown): boolean {
  return typeof value !== 'object' || value === null || /^(Object|Array)$/.test(value.constructor.name);
}
