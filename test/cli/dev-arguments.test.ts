import { describe, expect, it } from 'vitest';
import { parseDev } from '../../src/cli/dev-arguments.ts';

describe('runspan dev takes', () => {
  it('nothing, and has its defaults', () => {
    expect(parseDev([])).toEqual({
      kind: 'dev',
      port: 4777,
      host: undefined,
      allowedHosts: [],
      store: undefined,
      isInMemory: false,
      maxAgeMs: undefined,
      maxBytes: undefined,
      prices: undefined,
      isStrict: false,
      isJson: false,
      isQuiet: false,
      command: undefined,
    });
  });

  it.each<[string, object]>([
    ['--store a.db --strict --json', { store: 'a.db', isStrict: true, isJson: true }],
    ['--memory', { isInMemory: true }],
    ['--quiet', { isQuiet: true }],
    ['--max-age 30m', { maxAgeMs: 1_800_000 }],
    ['--max-age 12h', { maxAgeMs: 43_200_000 }],
    ['--max-age=30d', { maxAgeMs: 2_592_000_000 }],
    ['--max-size 500mb', { maxBytes: 524_288_000 }],
    ['--max-size 4GB', { maxBytes: 4_294_967_296 }],
    ['--host 0.0.0.0 --allow-host a.example --allow-host b', { host: '0.0.0.0', allowedHosts: ['a.example', 'b'] }],
    ['--prices p.json -- node --json', { prices: 'p.json', isJson: false, command: ['node', '--json'] }],
  ])('%s', (line, invocation) => {
    expect(parseDev(line.split(' '))).toMatchObject(invocation);
  });

  it.each<[string, string]>([
    ['--max-age 30', 'expected --max-age to be like 12h or 30d'],
    ['--max-age 0d', 'expected --max-age to be like 12h or 30d'],
    ['--max-age 1.5h', 'expected --max-age to be like 12h or 30d'],
    ['--max-age 1gb', 'expected --max-age to be like 12h or 30d'],
    ['--max-size 4', 'expected --max-size to be like 500mb or 4gb'],
    ['--max-size toString', 'expected --max-size to be like 500mb or 4gb'],
    ['--store', 'expected a value for --store'],
    ['--memory=yes', 'expected no value for --memory'],
    ['--memory --store a', '--memory and --store contradict each other'],
    ['--json --quiet', '--json and --quiet contradict each other'],
    ['--constructor', 'unknown option "--constructor"'],
  ])('but not %s', (line, message) => {
    expect(parseDev(line.split(' '))).toEqual({ kind: 'mistake', message, topic: 'dev' });
  });
});
