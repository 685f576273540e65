import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, mkdirSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { describe, expect, it, onTestFinished } from 'vitest';
import { root, temporaryFolder } from '../support/folders.ts';
import { type IngestServer, ingestServer } from '../support/ingest-server.ts';
import { runNames } from '../support/multipart-reader.ts';
import { bareEnvironment, type Ended, moduleText, startNode } from '../support/program.ts';

const PROGRAM = 'test/fixtures/signal-program.mjs';

/** Starts the program and waits until a signal may come. */
async function started(how: string, exitFlushMs = 20_000) {
  const server = await ingestServer();
  onTestFinished(server.close);
  const program = startNode([PROGRAM, how, String(exitFlushMs)], { RUNSPAN_ENDPOINT: server.url });
  onTestFinished(() => void program.child.kill('SIGKILL'));
  await program.printed(/^ready$/m);
  return { ...program, server };
}

/** The end of a program, and the runs that arrived. */
async function ending({ ended, server }: { ended: Promise<Ended>; server: IngestServer }) {
  const { code, signal, stderr } = await ended;
  return { code, signal, stderr, names: server.received.flatMap(runNames) };
}

describe('a signal that would end the program', () => {
  it.each(['SIGTERM', 'SIGINT', 'SIGHUP'] as const)(
    'delivers queued runs, and then ends the program: %s',
    async (signal) => {
      const program = await started('asked');
      program.child.kill(signal);

      expect(await ending(program)).toEqual({ code: null, signal, stderr: '', names: ['work', 'work'] });
    },
  );

  it('is left to the listener of the application', async () => {
    const program = await started('orderly', 1);
    program.child.kill('SIGTERM');

    expect(await ending(program)).toEqual({ code: 5, signal: null, stderr: '', names: ['work', 'work'] });
  });

  it('also delivers the runs of exporters without the option', async () => {
    await using server = await ingestServer();
    const program = startNode(
      moduleText(`
        import { configure, createExporter, startRun } from 'runspan';
        const limits = { lingerMs: 60_000, exitFlushMs: 20_000 };
        startRun({ name: 'tenant', exporter: createExporter({ limits }) }).end();
        configure({ handleSignals: true, limits });
        startRun({ name: 'work' }).end();
        process.on('message', () => {});
        process.kill(process.pid, 'SIGTERM');
      `),
      { RUNSPAN_ENDPOINT: server.url },
    );

    const { names, ...end } = await ending({ ...program, server });
    expect(end).toEqual({ code: null, signal: 'SIGTERM', stderr: '' });
    expect(names.sort()).toEqual(['tenant', 'work']);
  });

  it.each([
    ['nothing is delivered yet', ''],
    [
      'the first copy has delivered everything',
      'while (stats().sent < 1) await new Promise((resolve) => setImmediate(resolve));',
    ],
  ])('delivers the runs of both copies of the package if %s', async (_, wait) => {
    await using server = await ingestServer();
    const folder = temporaryFolder();
    onTestFinished(folder.remove);
    mkdirSync(join(folder.path, 'copy'));
    for (const name of ['dist', 'package.json'])
      cpSync(join(root, name), join(folder.path, 'copy', name), { recursive: true });
    symlinkSync(join(root, 'node_modules'), join(folder.path, 'node_modules'));
    const program = startNode(
      moduleText(`
        const record = async (path, lingerMs) => {
          const { configure, startRun, stats } = await import(path);
          configure({ handleSignals: true, limits: { lingerMs, exitFlushMs: 20_000 } });
          startRun({ name: 'work' }).end();
          return stats;
        };
        const stats = await record(${JSON.stringify(join(root, 'dist/index.js'))}, ${wait === '' ? 600_000 : 1});
        ${wait}
        await record(${JSON.stringify(join(folder.path, 'copy/dist/index.js'))}, 600_000);
        console.log('ready');
        setInterval(() => {}, 60_000);
      `),
      { RUNSPAN_ENDPOINT: server.url },
    );
    await program.printed(/ready/);
    program.child.kill('SIGTERM');

    expect(await ending({ ...program, server })).toEqual({
      code: null,
      signal: 'SIGTERM',
      stderr: '',
      names: ['work', 'work'],
    });
  });
});

/** Whether a command succeeds on this machine. */
function can(command: string, args: readonly string[]): boolean {
  return spawnSync(command, args, { stdio: 'ignore' }).status === 0;
}

describe('the first process of a container', () => {
  const own = ['--user', '--map-root-user', '--pid', '--fork', '--kill-child'];
  const canBeFirst = can('unshare', [...own, 'true']);

  // The kernel has no default for it: a SIGTERM that nobody listens for is ignored.
  it.skipIf(!canBeFirst)('survives the signal as without tracing, and delivers at each signal', async () => {
    await using server = await ingestServer();
    const program = moduleText(`
      import { configure, startRun, stats } from 'runspan';
      configure({ handleSignals: true, limits: { lingerMs: 600_000 } });
      const timer = setInterval(() => {}, 60_000);
      for (const name of ['first', 'second']) {
        startRun({ name }).end();
        const { sent } = stats();
        process.kill(process.pid, 'SIGTERM');
        while (stats().sent === sent) await new Promise((resolve) => setImmediate(resolve));
      }
      console.log(process.pid);
      process.exit(3);
    `);
    const env = { ...bareEnvironment(), RUNSPAN_ENDPOINT: server.url };
    const child = spawn('unshare', [...own, process.execPath, ...program], { cwd: root, env, timeout: 25_000 });
    const [stdout, stderr, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')]);

    expect({ code, stdout, stderr, names: server.received.flatMap(runNames) }).toEqual({
      code: 3,
      stdout: '1\n',
      stderr: '',
      names: ['first', 'second'],
    });
  });
});
