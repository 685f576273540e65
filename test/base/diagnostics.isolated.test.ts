import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { diagnostics, type Log } from '#src/base/diagnostics.ts';
import { forgetPackage } from '../support/fresh-copy.ts';
import { logLines } from '../support/log-lines.ts';
import { unhandledRejections } from './rejections.ts';

/** Returns the lines printed on standard error until the test has finished. */
function printed(log: Log): string[] {
  const lines: string[] = [];
  vi.spyOn(console, 'error').mockImplementation((line: string) => lines.push(line));
  diagnostics.setLog(log);
  onTestFinished(() => {
    diagnostics.setLog('warn');
    diagnostics.forgetPlaces();
  });
  return lines;
}

function logAll(): void {
  diagnostics.error('an error');
  diagnostics.warn('a warning');
  diagnostics.debug('a detail');
}

describe('a level', () => {
  test.each<[Log, string[]]>([
    ['silent', []],
    ['error', ['runspan: an error']],
    ['warn', ['runspan: an error', 'runspan: a warning']],
    ['debug', ['runspan: an error', 'runspan: a warning', 'runspan: a detail']],
  ])('%s prints the lines of its level and of more severe levels', (level, expected) => {
    const lines = printed(level);
    logAll();
    expect(lines).toEqual(expected);
  });

  test('is warn by default', async () => {
    const lines = printed('silent');
    forgetPackage();
    const fresh = await import('#src/base/diagnostics.ts');
    fresh.diagnostics.debug('a detail');
    fresh.diagnostics.warn('a warning');
    expect(lines).toEqual(['runspan: a warning']);
  });
});

describe('log lines hide', () => {
  test('each occurrence of a secret', () => {
    const lines = logLines();
    diagnostics.conceal(['canary-1', 'canary-2']);
    diagnostics.warn('canary-1 and canary-2, then canary-1canary-1');
    expect(lines).toEqual(['warn: [Redacted] and [Redacted], then [Redacted][Redacted]']);
  });

  test.each([
    ['abcde', 'warn: abcde'],
    ['fghijk', 'warn: [Redacted]'],
    ['lmnopqr', 'warn: [Redacted]'],
  ])('secrets of six or more characters: %s becomes `%s`', (value, shown) => {
    const lines = logLines();
    diagnostics.conceal([value]);
    diagnostics.warn(value);
    expect(lines).toEqual([shown]);
  });

  test.each([
    [999, '[Redacted]'],
    [1_000, 'canary-of-the-oldest'],
    [1_001, 'canary-of-the-oldest'],
  ])('the last 1 000 secrets: after %i others, the oldest becomes %s', (others, shown) => {
    const lines = logLines();
    diagnostics.conceal(['canary-of-the-oldest']);
    diagnostics.conceal(Array.from({ length: others }, (_, at) => `canary-${others}-${at}`));
    diagnostics.warn('canary-of-the-oldest');
    expect(lines).toEqual([`warn: ${shown}`]);
  });

  test('the user and password of an address', () => {
    const lines = logLines();
    diagnostics.warn('http://user:secret@host:1/a and https://token@host, at a@b');
    expect(lines).toEqual(['warn: http://[Redacted]@host:1/a and https://[Redacted]@host, at a@b']);
  });
});

describe('a log function', () => {
  test('is called with each line, and nothing is printed', () => {
    const lines = printed('debug');
    const seen = logLines();
    logAll();
    expect(seen).toEqual(['error: an error', 'warn: a warning', 'debug: a detail']);
    expect(lines).toEqual([]);
  });

  test('may throw, and is called for the next line', () => {
    const log = vi.fn(() => {
      throw new Error('disk full');
    });
    printed(log);
    expect(logAll).not.toThrow();
    expect(log).toHaveBeenCalledTimes(3);
  });

  test('may return a rejected promise, which is handled', async () => {
    const rejections = unhandledRejections();
    printed(async () => {
      throw new Error('disk full');
    });
    diagnostics.warn('a warning');
    expect(await rejections()).toEqual([]);
  });

  test('that logs a line itself is not called recursively', () => {
    const log = vi.fn(() => diagnostics.warn('trouble while logging'));
    printed(log);
    diagnostics.warn('a warning');
    expect(log).toHaveBeenCalledTimes(1);
    diagnostics.warn('another');
    expect(log.mock.calls).toEqual([
      ['warn', 'a warning'],
      ['warn', 'another'],
    ]);
  });
});

describe('a place of a warning', () => {
  test('is logged once, also with another text', () => {
    const lines = logLines();
    diagnostics.warnOnce('traceable', 'first');
    diagnostics.warnOnce('traceable', 'second');
    diagnostics.warnOnce('traced', 'third');
    expect(lines).toEqual(['warn: first', 'warn: third']);
  });

  test('is not logged after 1 000 other places', () => {
    const lines = logLines();
    for (let index = 1; index <= 1_001; index++) diagnostics.warnOnce(`place ${index}`, `${index}`);
    expect(lines.slice(-2)).toEqual(['warn: 999', 'warn: 1000']);
  });
});
