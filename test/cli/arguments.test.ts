import { spawnSync } from 'node:child_process';
import { chmodSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { version } from '../../src/base/env.ts';
import { duration, size } from '../../src/cli/command-line.ts';
import { runMain } from '../support/command.ts';
import { root, temporaryFolder } from '../support/folders.ts';

const HASH = '6f1f4ab0a32f6a9f43a0b7b3f5c55b0e';
const MODES = 'values, messages, messages-tuple, updates, events, tasks, checkpoints, debug, custom, tools';

/** The message about an option with an invalid value. */
const invalid = (option: string, value: string, expected: string): string =>
  `option '${option}' argument '${value}' is invalid. Expected ${expected}.`;
const TIME = 'a time, for example 90s, 15m, 12h or 30d';
const STATUSES = 'pending, success, error, cancelled, interrupted, incomplete';
const id = (value: string): string =>
  `command-argument value '${value}' is invalid for argument 'id'. Expected at least four characters of an id.`;
const port = (value: string): string => invalid('--port <n>', value, 'a number from 0 to 65535');
const limit = (value: string): string => invalid('--limit <n>', value, 'a number from 1 to 1000');
const address = (option: string, value: string): string => invalid(option, value, 'an http or https address');
const since = (value: string): string =>
  invalid('--since <time>', value, '15m, 2h, 7d, 2026-01-31 or 2026-01-31T09:00, for example');

/** Arguments that contain spaces are written as `[a b]`. */
const split = (line: string): string[] =>
  [...line.matchAll(/\[([^\]]*)\]|\S+/g)].map(([word, quoted]) => quoted ?? word);

describe('invalid arguments are reported with exit code 2', () => {
  it.each<[string, string]>([
    ['serve', "unknown command 'serve'"],
    ['trace', "unknown command 'trace'\n(Did you mean traces?)"],
    ['\u001b[2J', "unknown command '\\x1b[2J'"],
    ['--port', "unknown option '--port'"],
    ['dev --prot 1', "unknown option '--prot'\n(Did you mean --port?)"],
    ['dev -p 1', "unknown option '-p'"],
    ['dev --port', "option '--port <n>' argument missing"],
    ['dev --port -- node', port('--')],
    ['dev --port 65536', port('65536')],
    ['dev --port -1', port('-1')],
    ['dev --port 1e3', port('1e3')],
    ['dev --port []', port('')],
    ['dev --max-age 30', invalid('--max-age <time>', '30', TIME)],
    ['dev --max-size 4', invalid('--max-size <size>', '4', 'a size, for example 500mb or 4gb')],
    ['dev --memory --store a', "option '--memory' cannot be used with option '--store <file>'"],
    ['dev --json --quiet', "option '--quiet' cannot be used with option '--json'"],
    ['dev --constructor', "unknown option '--constructor'"],
    ['dev node a.js', 'expected -- before the command "node"'],
    ['dev node -- a.js', 'expected -- before the command "node"'],
    ['dev --', 'expected a command after --'],
    ['dev -- []', 'expected a command after --'],
    ['audit', 'expected -- and a command'],
    ['audit --', 'expected a command after --'],
    ['audit node', 'expected -- before the command "node"'],
    ['audit --output -- node', 'expected a value for --output'],
    ['audit --output= -- node', 'expected a value for --output'],
    ['audit --port 1 -- node', "unknown option '--port'"],
    ['audit --json=yes -- node', "unknown option '--json=yes'"],
    ['doctor --fix', "unknown option '--fix'"],
    ['doctor now', "too many arguments for 'doctor'. Expected 0 arguments but got 1."],
    ['traces --limit 0', limit('0')],
    ['traces --limit 1001', limit('1001')],
    ['traces --status done', `option '--status <status>' argument 'done' is invalid. Allowed choices are ${STATUSES}.`],
    ['traces --since soon', since('soon')],
    ['traces --since 2026-02-30', since('2026-02-30')],
    ['traces --since 2026-01-31T24', since('2026-01-31T24')],
    ['traces refund', "too many arguments for 'traces'. Expected 0 arguments but got 1."],
    ['traces --url ftp://x', address('--url <address>', 'ftp://x')],
    ['traces --url http://x --store y', "option '--url <address>' cannot be used with option '--store <file>'"],
    ['show abc', id('abc')],
    ['show hello', id('hello')],
    ['show abcd ef01', "too many arguments for 'show'. Expected 1 argument but got 2."],
    ['backup', "missing required argument 'file'"],
    ['spool drain', "unknown command 'drain'"],
    ['spool list --yes', "unknown option '--yes'"],
    ['spool purge --bad', "unknown option '--bad'"],
    ['spool send --from ../x', invalid('--from <hash>', '../x', 'a destination that runspan spool list shows')],
    ['spool list --dir=', 'expected a value for --dir'],
    ['spool list --endpoint file:///x', address('--endpoint <url>', 'file:///x')],
    ['deployments destroy', "unknown command 'destroy'"],
    ['deployments get', "missing required argument 'id'"],
    ['deployments upload d1', "missing required argument 'path'"],
    ['deployments get d1 --wait', "unknown option '--wait'"],
    ['deployments update d1 --name other', "unknown option '--name'"],
    ['deployments update d1 --ref --wait', 'expected a value for --ref'],
    ['deployments wait d1 --timeout 0s', invalid('--timeout <time>', '0s', TIME)],
    ['deployments list --limit 0', limit('0')],
    ['deployments get d1 --url host', address('--url <address>', 'host')],
    [
      'deployments get d1 --spelling git_host',
      'expected --spelling or RUNSPAN_CONTROL_PLANE_SPELLING to be for example git_host=…',
    ],
    [
      'deployments get d1 --spelling =a',
      'expected --spelling or RUNSPAN_CONTROL_PLANE_SPELLING to be for example git_host=…',
    ],
    ['deployments create --secret =value', 'expected --secret to be <name> or <name>=<value>'],
    ['deployments create --timeout 5m', '--timeout requires --wait'],
    ['deployments upload d1 a --wait', '--wait and --config require --deploy'],
    ['deployments upload d1 a --config graph.json', '--wait and --config require --deploy'],
    ['deployments update d1', 'expected something to change: --file or a field'],
    ['run', "missing required argument 'assistant'"],
    ['run agent', 'expected --input, --message or --resume'],
    ['run agent --input {} --message a', "option '--input <json>' cannot be used with option '--message <text>'"],
    ['run agent --resume true', '--resume requires --thread'],
    [
      'run agent --input {} --mode all',
      `option '--mode <mode>' argument 'all' is invalid. Allowed choices are ${MODES}.`,
    ],
    ['run agent --input []', 'expected a value for --input'],
    ['run agent --input null', 'expected --input to be a JSON object'],
    ['run agent --input {"key":"secret-in-it",}', '--input is not valid JSON (at character 22)'],
    [
      'completion tcsh',
      "command-argument value 'tcsh' is invalid for argument 'shell'. Allowed choices are bash, zsh, fish.",
    ],
  ])('%s', async (line, message) => {
    const env = { RUNSPAN_CONTROL_PLANE_URL: 'http://127.0.0.1:9' };
    const { code, stdout, stderr } = await runMain(split(line), env);
    const hint = /Run "runspan (\w+ )?--help" for (help|a list of commands)\.\n$/.exec(stderr);
    expect([code, stdout]).toEqual([2, '']);
    expect(stderr.slice(0, hint?.index)).toBe(`runspan: ${message}\n`);
  });

  it.each([[], ['spool'], ['deployments']])('a missing command, with the help: %s', async (...args) => {
    const { code, stdout, stderr } = await runMain(args);
    expect([code, stdout]).toEqual([2, '']);
    expect(stderr).toContain('Commands:\n');
  });

  it('with an option that is repeated wrongly', async () => {
    const { stderr } = await runMain(['spool', 'send', '--from', HASH, '--from', 'x']);
    expect(stderr).toContain("option '--from <hash>' argument 'x' is invalid");
  });
});

describe('amounts', () => {
  it.each<[string, number | undefined]>([
    ['90s', 90_000],
    ['15m', 900_000],
    ['12h', 43_200_000],
    ['30d', 2_592_000_000],
    ['0d', undefined],
    ['30', undefined],
    ['1.5h', undefined],
    ['1gb', undefined],
    ['1 h', undefined],
  ])('%s is a duration of %s ms', (text, ms) => {
    if (ms === undefined) expect(() => duration(text)).toThrow('Expected a time');
    else expect(duration(text)).toBe(ms);
  });

  it.each<[string, number | undefined]>([
    ['500mb', 524_288_000],
    ['4GB', 4_294_967_296],
    ['0mb', undefined],
    ['1d', undefined],
    ['toString', undefined],
  ])('%s is a size of %s bytes', (text, bytes) => {
    if (bytes === undefined) expect(() => size(text)).toThrow('Expected a size');
    else expect(size(text)).toBe(bytes);
  });
});

describe('help', () => {
  const commands = ['dev', 'traces', 'show', 'backup', 'audit', 'doctor', 'spool', 'deployments', 'run', 'completion'];

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
    if (names.length === 1) expect(await runMain(['help', ...names])).toMatchObject({ code: 0, stdout });
  });

  it('is also printed after other options', async () => {
    expect((await runMain(['dev', '--port', '1', '-h'])).stdout).toMatch(/^Usage: runspan dev/);
  });

  it.each(['-v', '--version'])('%s prints the version', async (option) => {
    expect(await runMain([option])).toEqual({ code: 0, stdout: `${version}\n`, stderr: '' });
  });
});

describe('completion', () => {
  it.each<[string, string[]]>([
    ['d', ['dev', 'doctor', 'deployments']],
    ['dev --p', ['--port', '--prices']],
    ['spool p', ['purge']],
    ['spool purge --', ['--dir', '--endpoint', '--all', '--yes']],
    ['traces --status in', ['interrupted', 'incomplete']],
    ['run agent --mode up', ['updates']],
    ['completion ', ['bash', 'zsh', 'fish']],
    ['dev --store ', []],
    ['dev -- --p', []],
  ])('of "%s" suggests %j', async (line, values) => {
    const { code, stdout } = await runMain(['complete', '--', ...line.split(' ')]);
    expect(code).toBe(0);
    const suggested = stdout.split('\n').map((text) => text.split('\t')[0]);
    expect(suggested.filter(Boolean)).toEqual(values);
  });

  it.each(['bash', 'zsh', 'fish'])('has a script for %s', async (shell) => {
    const { code, stdout } = await runMain(['completion', shell]);
    expect([code, stdout]).toEqual([0, expect.stringContaining('runspan complete -- ')]);
  });

  it.skipIf(spawnSync('bash', ['--version']).status !== 0)('works in bash', async () => {
    const folder = temporaryFolder();
    onTestFinished(folder.remove);
    const command = join(folder.path, 'runspan');
    writeFileSync(command, `#!/bin/sh\nexec ${process.execPath} ${join(root, 'dist/cli/main.js')} "$@"\n`);
    chmodSync(command, 0o755);
    const { stdout: script } = await runMain(['completion', 'bash']);
    const test = `${script}\nCOMP_WORDS=(runspan traces --st)\nCOMP_CWORD=2\n_runspan\necho "\${COMPREPLY[@]}"`;
    const env = { ...process.env, PATH: `${folder.path}:${process.env.PATH}` };
    expect(spawnSync('bash', ['-c', test], { env, encoding: 'utf8' }).stdout).toBe('--status --store\n');
  });
});
