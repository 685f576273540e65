import { chmodSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { version } from '../../src/base/version.ts';
import { usage } from '../../src/cli/arguments.ts';
import { environmentFor } from '../../src/cli/dev.ts';
import { temporaryFolder } from '../support/folders.ts';
import { moduleText, runNode, runRunspan, startRunspan } from '../support/program.ts';

const index = new URL('../../dist/index.js', import.meta.url).href;

/** The arguments of `runspan dev` that start a module given as text, on any free port. */
const devWith = (code: string): string[] => ['dev', '--port', '0', '--', process.execPath, ...moduleText(code)];

/** A program that traces `answer`, with `after` as its last lines. */
const program = (after = ''): string => `
  import { currentRun, flush, startRun, traceable } from '${index}';
  const search = traceable(
    async () => { throw new RangeError('no index\\nat all'); },
    { name: 'search', runType: 'retriever' },
  );
  const call = traceable(
    () => currentRun().set({ usage: { input_tokens: 12, output_tokens: 3 } }),
    { name: 'call', runType: 'llm' },
  );
  await traceable(async () => { await search().catch(() => {}); call(); }, { name: 'answer' })();
  ${after}`;

/** Lines of standard output without times and port. */
const shown = (stdout: string): string[] =>
  stdout
    .replaceAll(/\d+(\.\d+)? ms/g, '_ ms')
    .replaceAll(/127\.0\.0\.1:\d+/g, 'HOST')
    .trimEnd()
    .split('\n');

const TREE = [
  'runspan listens on http://HOST',
  '',
  'answer · chain · _ ms',
  '├─ search · retriever · _ ms · ✗ RangeError: no index',
  '└─ call · llm · _ ms · 15 tokens (12 in, 3 out)',
];

describe('the environment of a command', () => {
  const URL = 'http://127.0.0.1:4777';

  it.each<[Record<string, string>, string | undefined]>([
    [{}, 'true'],
    [{ LANGSMITH_TRACING: 'yes', LANGCHAIN_TRACING_V2: 'true' }, 'true'],
    [{ LANGSMITH_TRACING: 'false' }, 'false'],
    [{ LANGSMITH_TRACING: ' False ' }, ' False '],
    [{ LANGCHAIN_TRACING_V2: 'false' }, undefined],
    [{ LANGSMITH_TRACING_V2: 'false' }, undefined],
    [{ LANGCHAIN_TRACING: 'false' }, undefined],
  ])('turns langsmith on unless somebody has turned it off: %j', (given, expected) => {
    for (const name of ['LANGSMITH_TRACING', 'LANGSMITH_TRACING_V2', 'LANGCHAIN_TRACING', 'LANGCHAIN_TRACING_V2']) {
      vi.stubEnv(name, given[name]);
    }
    onTestFinished(() => void vi.unstubAllEnvs());
    const { LANGSMITH_TRACING, ...others } = environmentFor(URL);
    expect(LANGSMITH_TRACING).toBe(expected);
    expect(others).toMatchObject({ RUNSPAN_ENDPOINT: URL, RUNSPAN_TRACING: 'true', LANGSMITH_ENDPOINT: URL });
  });
});

describe.concurrent('runspan dev with a command', () => {
  it('draws the traces of the command, the last one included, and ends as it ends', async () => {
    const { code, stdout, stderr } = await runRunspan(devWith(program('process.exitCode = 7;')));
    expect(stderr).toBe('');
    expect(shown(stdout)).toEqual(TREE);
    expect(code).toBe(7);
  });

  it('draws as incomplete what never ended', async () => {
    const { stdout } = await runRunspan(devWith(program(`startRun({ name: 'left open' });`)));
    expect(shown(stdout)).toEqual([...TREE, '', 'left open · chain · not ended', '(incomplete: 1 run has not ended)']);
  });

  it('hands its own streams to the command', async () => {
    const { child, printed, ended } = startRunspan(
      devWith(`console.log('ready'); process.stdin.on('data', (data) => console.error('got', String(data)));`),
    );
    await printed(/ready/);
    child.stdin?.end('a line');
    expect(await ended).toMatchObject({ code: 0, stderr: 'got a line\n' });
  });

  it.each<[string, Record<string, string>, string]>([
    ['in an empty environment', {}, 'runspan-dev undefined'],
    [
      'in one that points elsewhere',
      {
        RUNSPAN_TRACING: 'false',
        LANGSMITH_TRACING: 'yes',
        LANGSMITH_API_KEY: 'mine',
        LANGSMITH_RUNS_ENDPOINTS: '{"https://example.com":"k"}',
      },
      'mine undefined',
    ],
  ])('points the command at the receiver, %s', async (_, env, rest) => {
    const code = `const { env } = process;
      console.log(env.RUNSPAN_ENDPOINT, env.LANGSMITH_ENDPOINT, env.RUNSPAN_TRACING, env.LANGSMITH_TRACING,
        env.LANGSMITH_API_KEY, env.LANGSMITH_RUNS_ENDPOINTS);`;
    const { stdout } = await runRunspan(devWith(code), env);
    const url = /http:\S+/.exec(stdout)?.[0];
    expect(stdout.split('\n')[1]).toBe(`${url} ${url} true true ${rest}`);
  });

  it('draws the runs of the langsmith package', async () => {
    const code = `
      import { traceable } from 'langsmith/traceable';
      import { Client } from 'langsmith';
      const client = new Client();
      await traceable(async () => 1, { name: 'theirs', run_type: 'tool', client })();
      await client.awaitPendingTraceBatches();`;
    const { stdout } = await runRunspan(devWith(code));
    expect(shown(stdout)).toEqual(['runspan listens on http://HOST', '', 'theirs · tool · _ ms']);
  });

  it('ends by the signal that ended the command', async () => {
    const ending = program(`await flush(); process.kill(process.pid, 'SIGTERM'); setInterval(() => {}, 1_000);`);
    const { signal, stdout, stderr } = await runRunspan(devWith(ending));
    expect(stderr).toBe('');
    expect(shown(stdout)).toEqual(TREE);
    expect(signal).toBe('SIGTERM');
  });

  it.each<NodeJS.Signals>(['SIGINT', 'SIGTERM', 'SIGHUP'])(
    'hands %s on, and ends as the command makes of it',
    async (signal) => {
      const ending = `process.once('${signal}', () => process.exit(9)); setInterval(() => {}, 1_000); console.log('ready');`;
      const { child, printed, ended } = startRunspan(devWith(ending));
      await printed(/ready/);
      child.kill(signal);
      expect(await ended).toMatchObject({ code: 9, stderr: '' });
    },
  );

  it('ends together with a command that leaves SIGINT alone', async () => {
    const { child, printed, ended } = startRunspan(devWith(`setInterval(() => {}, 1_000); console.log('ready');`));
    await printed(/ready/);
    child.kill('SIGINT');
    expect(await ended).toMatchObject({ signal: 'SIGINT', stderr: '' });
  });

  it('kills a command that hears nothing at the third signal', async () => {
    const deaf = `let count = 0;
      process.on('SIGTERM', () => console.log('no', ++count));
      setInterval(() => {}, 1_000);
      console.log('ready');`;
    const { child, printed, ended } = startRunspan(devWith(deaf));
    for (const answer of [/ready/, /no 1/, /no 2/]) {
      await printed(answer);
      child.kill('SIGTERM');
    }
    expect(await ended).toMatchObject({ signal: 'SIGKILL', stderr: '' });
  });

  it('says that a command does not exist', async () => {
    const { code, stderr } = await runRunspan(['dev', '--port', '0', '--', 'no-such-command']);
    expect(stderr).toBe('runspan: command not found: "no-such-command"\n');
    expect(code).toBe(127);
  });

  it.skipIf(process.platform === 'win32')('says that a file cannot be run', async () => {
    const folder = temporaryFolder();
    const file = join(folder.path, 'notes.txt');
    writeFileSync(file, 'text');
    chmodSync(file, 0o644);
    const { code, stderr } = await runRunspan(['dev', '--port', '0', '--', file]);
    folder.remove();
    expect(stderr).toBe(`runspan: cannot start "${file}": it is not executable\n`);
    expect(code).toBe(126);
  });
});

describe.concurrent('runspan dev by itself', () => {
  it.each<NodeJS.Signals>(['SIGINT', 'SIGTERM'])('listens until %s, and draws what comes', async (signal) => {
    const { child, printed, ended } = startRunspan(['dev', '--port', '0']);
    const [, url = ''] = await printed(/start it with RUNSPAN_ENDPOINT=(\S+)\n/);
    await runNode(moduleText(program()), { RUNSPAN_ENDPOINT: url });
    await printed(/call/);
    await runNode(moduleText(program()), { RUNSPAN_ENDPOINT: url });
    child.kill(signal);
    const { code, stdout, stderr } = await ended;
    expect(stderr).toBe('');
    const [listens, ...tree] = TREE;
    const how = 'To see an application here, start it with RUNSPAN_ENDPOINT=http://HOST';
    expect(shown(stdout)).toEqual([listens, how, ...tree, ...tree]);
    expect(code).toBe(0);
  });
});

describe.concurrent('runspan', () => {
  it('says that a port is taken, and what to do', async () => {
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as AddressInfo;
    const { code, stdout, stderr } = await runRunspan(['dev', '--port', String(port)]);
    server.close();
    expect(stderr).toBe(
      `runspan: port ${port} is in use; end the program that holds it, or choose another with --port (0 takes any free one)\n`,
    );
    expect(stdout).toBe('');
    expect(code).toBe(1);
  });

  it.each<[string[], string, string]>([
    [['dve'], 'unknown command "dve"', 'Usage: runspan <command> [options]'],
    [['dev', '--prot', '1'], 'unknown option "--prot"', 'Usage: runspan dev [--port 4777] [-- command args]'],
  ])('answers the mistake %j with a line, the usage and 2', async (args, message, hint) => {
    expect(await runRunspan(args)).toMatchObject({ code: 2, stdout: '', stderr: `runspan: ${message}\n${hint}\n` });
  });

  it('tells how it is used, and its version', async () => {
    expect(await runRunspan(['dev', '--help'])).toMatchObject({ code: 0, stderr: '', stdout: usage.dev });
    expect(await runRunspan(['--version'])).toMatchObject({ code: 0, stderr: '', stdout: `${version}\n` });
  });

  it('outlives a reader that goes away', async () => {
    const { child, printed, ended } = startRunspan(
      devWith(`console.log('ready'); await new Promise((end) => process.stdin.on('end', end).resume()); ${program()}`),
    );
    await printed(/ready/);
    child.stdout?.destroy();
    child.stdin?.end();
    expect(await ended).toMatchObject({ code: 0, stderr: '' });
  });
});
