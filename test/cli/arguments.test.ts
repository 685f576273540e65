import { describe, expect, it } from 'vitest';
import { parseArguments, usage } from '../../src/cli/arguments.ts';

const audit = (command: string[]) => ({ kind: 'audit', isJson: false, output: undefined, command });
const dev = (port: number, command?: string[]) => expect.objectContaining({ kind: 'dev', port, command });

describe('the arguments', () => {
  it.each<[string[], object]>([
    [['dev'], dev(4777)],
    [['dev', '--port', '0'], dev(0)],
    [['dev', '--port=65535'], dev(65_535)],
    [['dev', '--port', '1', '--port', '2'], dev(2)],
    [['dev', '--', 'node', 'a.js'], dev(4777, ['node', 'a.js'])],
    [
      ['dev', '--port', '5000', '--', 'node', '--port', '1', '--', '--help'],
      dev(5000, ['node', '--port', '1', '--', '--help']),
    ],
    [['audit', '--', 'node', '--json'], audit(['node', '--json'])],
    [['audit', '--json', '--output', 'a.jsonl', '--', 'node'], { ...audit(['node']), isJson: true, output: 'a.jsonl' }],
    [['audit', '--help'], { kind: 'help', topic: 'audit' }],
    [['doctor'], { kind: 'doctor', isJson: false }],
    [['doctor', '--json'], { kind: 'doctor', isJson: true }],
    [['doctor', '-h'], { kind: 'help', topic: 'doctor' }],
    [['--help'], { kind: 'help', topic: 'runspan' }],
    [['-h'], { kind: 'help', topic: 'runspan' }],
    [['dev', '--help'], { kind: 'help', topic: 'dev' }],
    [['dev', '--port', '1', '-h'], { kind: 'help', topic: 'dev' }],
    [['--version'], { kind: 'version' }],
    [['-v'], { kind: 'version' }],
  ])('%j are understood', (argv, expected) => {
    expect(parseArguments(argv)).toEqual(expected);
  });

  it.each<[string[], string]>([
    [[], 'expected a command'],
    [[''], 'unknown command ""'],
    [['serve'], 'unknown command "serve"'],
    [['--port'], 'unknown option "--port"'],
    [['\u001b[2J'], 'unknown command "\\x1b[2J"'],
    [['dev', '--prot', '1'], 'unknown option "--prot"'],
    [['dev', '-p', '1'], 'unknown option "-p"'],
    [['dev', '--port'], 'expected --port to be a number from 0 to 65535'],
    [['dev', '--port', '--', 'node'], 'expected --port to be a number from 0 to 65535'],
    [['dev', '--port', '65536'], 'expected --port to be a number from 0 to 65535'],
    [['dev', '--port', '-1'], 'expected --port to be a number from 0 to 65535'],
    [['dev', '--port', '1e3'], 'expected --port to be a number from 0 to 65535'],
    [['dev', '--port', ''], 'expected --port to be a number from 0 to 65535'],
    [['dev', 'node', 'a.js'], 'expected -- before the command "node"'],
    [['dev', '--'], 'expected a command after --'],
    [['dev', '--', ''], 'expected a command after --'],
    [['audit'], 'expected -- and a command'],
    [['audit', '--'], 'expected -- and a command'],
    [['audit', 'node'], 'expected -- before the command "node"'],
    [['audit', '--output', '--', 'node'], 'expected a file after --output'],
    [['audit', '--output=', '--', 'node'], 'expected a file after --output'],
    [['audit', '--port', '1', '--', 'node'], 'unknown option "--port"'],
    [['doctor', '--fix'], 'unknown option "--fix"'],
    [['doctor', '--', 'node'], 'expected no command'],
    [['doctor', 'now'], 'expected no argument "now"'],
    [['doctor', '--json=yes'], 'expected no value for --json'],
    [['audit', '--json=yes', '--', 'node'], 'expected no value for --json'],
    [['x'.repeat(81)], `unknown command "${'x'.repeat(80)}…"`],
  ])('%j are a mistake that is named on one line', (argv, message) => {
    expect(parseArguments(argv)).toMatchObject({ kind: 'mistake', message });
  });
});

describe('the usage', () => {
  it('fits a narrow terminal', () => {
    const lines = Object.values(usage).flatMap((text) => text.split('\n'));
    expect(lines.filter((line) => line.length > 100)).toEqual([]);
  });

  it.each(['spool', 'deployments'] as const)('names every action of %s', (command) => {
    const actions = [...usage[command].matchAll(new RegExp(`runspan ${command} (\\w+)`, 'g'))].map(
      ([, action]) => action,
    );
    const [, summary = ''] = new RegExp(`^  ${command} ([^,]*)`, 'm').exec(usage.runspan) ?? [];
    expect(actions.filter((action) => !summary.includes(action ?? ''))).toEqual([]);
    expect(actions.length).toBeGreaterThan(2);
  });
});
