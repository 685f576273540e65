import { describe, expect, it } from 'vitest';
import { parseShow, parseTraces } from '../../src/cli/query-arguments.ts';

const NOW_US = Date.UTC(2026, 10, 20, 12) * 1_000;
const nowhere = { url: undefined, store: undefined };

describe('runspan traces takes', () => {
  it.each<[string, object]>([
    ['', { query: { limit: 20 }, isJson: false, place: nowhere }],
    ['--json --limit 1000', { query: { limit: 1_000 }, isJson: true }],
    ['--limit 1', { query: { limit: 1 } }],
    ['--project a --name b --type llm --model m', { query: { project: 'a', name: 'b', runType: 'llm', model: 'm' } }],
    ['--status error --status pending --tag x --tag y', { query: { status: ['error', 'pending'], tag: ['x', 'y'] } }],
    ['--text=new', { query: { text: 'new' } }],
    ['--since 90s', { query: { startedFrom: '2026-11-20T11:58:30.000000Z' } }],
    ['--since 2h', { query: { startedFrom: '2026-11-20T10:00:00.000000Z' } }],
    ['--since 7d', { query: { startedFrom: '2026-11-13T12:00:00.000000Z' } }],
    ['--since 2026-01-31', { query: { startedFrom: new Date(2026, 0, 31).toISOString().replace('Z', '000Z') } }],
    [
      '--since 2026-01-31T09:00',
      { query: { startedFrom: new Date(2026, 0, 31, 9).toISOString().replace('Z', '000Z') } },
    ],
    ['--since 2026-11-20T00:00:00Z', { query: { startedFrom: '2026-11-20T00:00:00Z' } }],
    ['--url http://127.0.0.1:1/x', { place: { url: new URL('http://127.0.0.1:1/x'), store: undefined } }],
    ['--store a.db', { place: { url: undefined, store: 'a.db' } }],
  ])('%s', (line, invocation) => {
    expect(parseTraces(line.split(' ').filter(Boolean), NOW_US)).toMatchObject({ kind: 'traces', ...invocation });
  });

  it.each<[string, string]>([
    ['--limit 0', 'expected --limit to be a number from 1 to 1000'],
    ['--limit 1001', 'expected --limit to be a number from 1 to 1000'],
    ['--limit x', 'expected --limit to be a number from 1 to 1000'],
    ['--limit', 'expected a value for --limit'],
    [
      '--status done',
      'expected --status to be one of pending, success, error, cancelled, interrupted, incomplete, got "done"',
    ],
    ['--since soon', 'expected --since to be like 15m, 2h, 7d, 2026-01-31 or 2026-01-31T09:00, got "soon"'],
    ['--since 2026-02-30', 'expected --since to be like 15m, 2h, 7d, 2026-01-31 or 2026-01-31T09:00, got "2026-02-30"'],
    [
      '--since 2026-01-31T24',
      'expected --since to be like 15m, 2h, 7d, 2026-01-31 or 2026-01-31T09:00, got "2026-01-31T24"',
    ],
    ['refund', 'unexpected "refund"; words to look for go after --text'],
    ['--json=yes', 'expected no value for --json'],
    ['--full', 'unknown option "--full"'],
    ['--url ftp://x', 'expected --url to be an http or https address'],
    ['--url http://x --store y', '--url and --store are two places to look; give one'],
  ])('but not %s', (line, message) => {
    expect(parseTraces(line.split(' '), NOW_US)).toEqual({ kind: 'mistake', message, topic: 'traces' });
  });
});

describe('runspan show takes', () => {
  it.each<[string, object]>([
    ['', { id: undefined, isFull: false, isJson: false, place: nowhere }],
    ['0193B3A0-1111-7000-8000-000000000001 --full', { id: '0193b3a0-1111-7000-8000-000000000001', isFull: true }],
    ['ab12 --json', { id: 'ab12', isJson: true }],
  ])('%s', (line, invocation) => {
    expect(parseShow(line.split(' ').filter(Boolean))).toMatchObject({ kind: 'show', ...invocation });
  });

  it.each<[string, string]>([
    ['abc', 'expected an id, or four characters of it at least, got "abc"'],
    ['hello', 'expected an id, or four characters of it at least, got "hello"'],
    ['abcd ef01', 'unexpected "ef01"'],
    ['--limit 3', 'unknown option "--limit"'],
  ])('but not %s', (line, message) => {
    expect(parseShow(line.split(' '))).toEqual({ kind: 'mistake', message, topic: 'show' });
  });

  it('a question for help', () => {
    expect(parseShow(['-h'])).toEqual({ kind: 'help', topic: 'show' });
    expect(parseTraces(['--help'], 0)).toEqual({ kind: 'help', topic: 'traces' });
  });
});
