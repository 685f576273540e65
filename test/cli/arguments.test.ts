import { describe, expect, it } from 'vitest';
import { version } from '#src/base/version.ts';
import { durationArgument, size } from '#src/cli/command-line.ts';
import { runMain } from '../support/command.ts';

/** The beginning of the message about an option with an invalid value. */
const invalid = (option: string, value: string, expected: string): string =>
  `option '${option}' argument '${value}' is invalid. ${expected}`;
const port = (value: string): string => invalid('--port <n>', value, 'Expected a number from 0 to 65535.');

/** Arguments that contain spaces are written as `[a b]`. */
const split = (line: string): string[] =>
  [...line.matchAll(/\[([^\]]*)\]|\S+/g)].map(([word, quoted]) => quoted ?? word);

describe('invalid arguments are reported with exit code 2', () => {
  it.each<[string, string]>([
    ['trace', "unknown command 'trace'\n(Did you mean traces?)"],
    ['\u001b[2J', "unknown command '\\x1b[2J'"],
    ['init --force', "unknown option '--force'"],
    ['dev --prot 1', "unknown option '--prot'\n(Did you mean --port?)"],
    ['dev --port -- node', port('--')],
    ['dev --port 65536', port('65536')],
    ['dev --port 1e3', port('1e3')],
    ['dev --max-age 30', invalid('--max-age <time>', '30', 'Expected a time, for example 90s')],
    ['dev --max-size 4', invalid('--max-size <size>', '4', 'Expected a size, for example 500mb')],
    ['dev --allow-host foo:33', invalid('--allow-host <name>', 'foo:33', 'Expected a host name without a scheme')],
    ['dev --memory --store a', "option '--memory' cannot be used with option '--store <file>'"],
    ['dev --json --quiet', "option '--quiet' cannot be used with option '--json'"],
    ['dev node a.js', 'expected -- before the command "node"'],
    ['dev node -- a.js', 'expected -- before the command "node"'],
    ['dev --', 'expected a command after --'],
    ['doctor now', "too many arguments for 'doctor'. Expected 0 arguments but got 1."],
    ['traces --limit 1001', invalid('--limit <n>', '1001', 'Expected a number from 1 to 1000.')],
    ['traces --status done', invalid('--status <status>', 'done', 'Allowed choices are error, failed_below')],
    ['traces --since soon', invalid('--since <time>', 'soon', 'Expected 15m, 2h, 7d')],
    ['traces --since 2026-02-30', invalid('--since <time>', '2026-02-30', 'Expected 15m')],
    ['traces --url ftp://x', invalid('--url <url>', 'ftp://x', 'Expected an http or https URL.')],
    ['traces --url http://x --store y', "option '--url <url>' cannot be used with option '--store <file>'"],
    ['show abc', '"abc" is not an id: expected four or more of the digits 0-9 and a-f'],
    ['show xyz1', '"xyz1" is not an id: expected four or more of'],
    ['help foo', "unknown command 'foo'"],
    ['help trace', "unknown command 'trace'\n(Did you mean traces?)"],
    ['help spool nope', "unknown command 'nope'"],
    ['spool send --from ../x', invalid('--from <hash>', '../x', 'Expected a destination')],
    ['deployments get', "missing required argument 'id'"],
    ['deployments update d1 --ref --wait', 'expected a value for --ref'],
    ['deployments get d1 --spelling =a', 'expected --spelling to be a pair such as'],
    ['deployments create --secret =value', 'expected --secret to be <name> or <name>=<value>'],
    ['deployments create --timeout 5m', '--timeout requires --wait'],
    ['deployments upload d1 a --wait', '--wait and --config require --deploy'],
    ['deployments update d1', 'nothing to change: pass --file or an option for a field'],
    ['deployments create --file /dev/null', '--file is not valid JSON'],
    ['deployments get d1', 'deployments.get: path.deployment_id: Expected a UUID'],
    ['deployments list --url http://192.0.2.1', 'expected --url or RUNSPAN_CONTROL_PLANE_URL to be'],
    ['spool send', 'no endpoint: set RUNSPAN_ENDPOINT or --endpoint'],
    ['backup copy.db --store memory', 'RUNSPAN_STORE=memory has no store file'],
  ])('%s', async (line, message) => {
    const env = { RUNSPAN_CONTROL_PLANE_URL: 'http://127.0.0.1:9', RUNSPAN_CONTROL_PLANE_KEY: 'k' };
    const { code, stdout, stderr } = await runMain(split(line), env);
    expect([code, stdout]).toEqual([2, '']);
    expect(stderr.slice(0, `runspan: ${message}`.length)).toBe(`runspan: ${message}`);
    expect(stderr).toMatch(/\nRun "runspan (\w+ )?--help" for (help|a list of commands)\.\n$/);
  });

  it.each([[], ['spool'], ['deployments']])('a missing command, with the help: %s', async (...args) => {
    const { code, stdout, stderr } = await runMain(args);
    expect([code, stdout]).toEqual([2, '']);
    expect(stderr).toContain('Commands:\n');
  });
});

describe('amounts', () => {
  it.each<readonly [string, (text: string) => number, number | string]>([
    ['90s', durationArgument, 90_000],
    ['15m', durationArgument, 900_000],
    ['12h', durationArgument, 43_200_000],
    ['30d', durationArgument, 2_592_000_000],
    ...['0d', '30', '1gb'].map((text) => [text, durationArgument, 'Expected a time'] as const),
    ['500mb', size, 524_288_000],
    ['4GB', size, 4_294_967_296],
    ...['0mb', '1d', 'toString'].map((text) => [text, size, 'Expected a size'] as const),
  ])('%s is parsed', (text, parse, expected) => {
    if (typeof expected === 'string') expect(() => parse(text)).toThrow(expected);
    else expect(parse(text)).toBe(expected);
  });
});

describe('help', () => {
  const commands =
    'init dev demo serve keys traces show rerun test set mcp delete backup store doctor spool deployments'.split(' ');

  it('lists all commands', async () => {
    const { code, stdout } = await runMain(['--help']);
    const listed = stdout.slice(stdout.indexOf('Commands:')).matchAll(/^ {2}(\w+)/gm);
    expect(code).toBe(0);
    expect([...listed].map(([, name]) => name)).toEqual([...commands, 'help']);
    expect(await runMain(['-h'])).toMatchObject({ stdout });
    expect(await runMain(['help'])).toMatchObject({ stdout });
  });

  it.each([
    ...commands.map((name) => [name]),
    ...['create', 'list', 'revoke'].map((action) => ['keys', action]),
    ...['list', 'send', 'purge'].map((action) => ['spool', action]),
    ...['list', 'get', 'create', 'update', 'redeploy', 'wait', 'upload', 'delete', 'integrations', 'listeners'].map(
      (action) => ['deployments', action],
    ),
  ])('of %s %s is at most 100 columns wide', async (...args) => {
    const names = args.filter((one) => one !== undefined);
    const { code, stdout, stderr } = await runMain([...names, '--help']);
    expect([code, stderr]).toEqual([0, '']);
    expect(stdout).toMatch(new RegExp(`^Usage: runspan ${names.join(' ')}`));
    expect(stdout.split('\n').filter((line) => line.length > 100)).toEqual([]);
    expect(await runMain(['help', ...names])).toMatchObject({ code: 0, stdout });
  });

  it('of a command ignores the arguments of the command', async () => {
    const { stdout } = await runMain(['dev', '--help']);
    expect(await runMain(['help', 'dev', '--', 'no-such-command'])).toMatchObject({ code: 0, stdout });
  });

  it.each(['-v', '--version'])('%s prints the version', async (option) => {
    expect(await runMain([option])).toEqual({ code: 0, stdout: `${version}\n`, stderr: '' });
  });
});
