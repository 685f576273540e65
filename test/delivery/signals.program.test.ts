import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { describe, expect, it, onTestFinished } from 'vitest';
import { version } from '#src/base/version.ts';
import { PROGRAM_ENDED } from '#src/run/record.ts';
import { root, temporaryFolder } from '../support/folders.ts';
import { ingestServer, ingestServerInTest, type Reply } from '../support/ingest-server.ts';
import { readJsonParts, runNames } from '../support/multipart-reader.ts';
import { bareEnvironment, moduleText, startNode } from '../support/program.ts';
import { filesBelow } from '../support/spool.ts';

type Variables = Readonly<Record<string, string>>;

const REGISTER = ['--import', 'runspan/register'];

/** Runs the code, and sends a signal to it when it is ready. */
async function signalled(
  args: readonly string[],
  code: string,
  env: Variables,
  signal: NodeJS.Signals,
  reply?: () => Reply,
) {
  const server = await ingestServerInTest(reply);
  const imports = `import { subscribe } from 'node:diagnostics_channel';
    import { configure, createExporter, shutdown, startRun } from 'runspan';`;
  const ready = `console.log('ready', process.listenerCount('SIGTERM')); setInterval(() => {}, 60_000);`;
  const program = startNode([...args, ...moduleText(imports + code + ready)], { RUNSPAN_ENDPOINT: server.url, ...env });
  await program.printed(/ready/);
  program.child.kill(signal);
  return { ...program, server };
}

describe('a signal that would end the program', () => {
  const WORK = `startRun({ name: 'work' }).end(); startRun({ name: 'job' });`;
  const SEVERAL = WORK.replace(`'work'`, `'work', exporter: createExporter()`);
  const EMIT = `process.emit('SIGTERM'); await new Promise(setImmediate);`;
  const SHUTDOWN = `process.once('SIGTERM', () => shutdown().then(() => process.exit(5)));`;
  const EXIT = `process.once('SIGTERM', async () => {
    console.log('heard', process.listenerCount('SIGTERM'));
    await new Promise(setImmediate);
    if (process.listenerCount('SIGTERM') === 0) process.exit(7);
  });`;
  const LATE = `subscribe('runspan:request:end', () => process.once('SIGTERM', (_, number) => process.exit(number)));`;
  const ON = `configure({ handleSignals: true }); ${WORK}`;
  const delivered = { code: null, stderr: '', stdout: 'ready 1\n', arrived: [`job ${PROGRAM_ENDED}`, 'work'] };
  const lost = { ...delivered, stdout: 'ready 0\n', arrived: [] };
  const left = { ...lost, code: 7, stdout: 'ready 2\nheard 0\n' };
  const shutDown = { ...delivered, code: 5, stdout: 'ready 2\n' };

  it.each([
    ['SIGTERM, by default', [], WORK, lost],
    ['SIGTERM, with the option', [], ON, delivered],
    ['SIGINT, with the option', [], ON, delivered],
    ['SIGHUP, with the option', [], ON, delivered],
    ['SIGTERM, with the option and another exporter', [], `configure({ handleSignals: true }); ${SEVERAL}`, delivered],
    ['SIGTERM, with a listener that shuts down', [], SHUTDOWN + ON, shutDown],
    ['SIGTERM, with `register`', REGISTER, WORK, delivered],
    ['SIGINT, with `register`', REGISTER, WORK, { ...delivered, arrived: [] }],
    ['SIGTERM, with `register`, after `process.emit`', REGISTER, WORK + EMIT, delivered],
    ['SIGTERM, with `register` and several exporters', REGISTER, `configure({}); ${SEVERAL}`, delivered],
    ['SIGTERM, with `register` and the option', REGISTER, `configure({ handleSignals: false }); ${WORK}`, lost],
    ['SIGTERM, with a listener that ends the program if it is the last', REGISTER, EXIT + WORK, left],
    ['SIGTERM, with a listener that is added later', REGISTER, WORK + EXIT, left],
    ['SIGTERM, with a listener that is added meanwhile', REGISTER, LATE + WORK, { ...delivered, code: 15 }],
  ] as const)('delivers ended and open runs, or leaves them: %s', async (title, args, code, expected) => {
    const signal = title.slice(0, title.indexOf(',')) as NodeJS.Signals;
    const { ended, server } = await signalled(args, code, {}, signal);
    const end = await ended;
    const parts = server.received.flatMap((request) => [...readJsonParts(request)]);
    const posts = parts.filter(([part]) => /^post\.[^.]+$/.test(part));
    const arrived = posts.map(([, { name, error }]) => (error === undefined ? name : `${name} ${error}`));
    const isLeft = end.stderr.startsWith('runspan: undelivered runs (2) are on disk;');
    expect(isLeft).toBe(expected === left);
    expect({ ...end, arrived: arrived.sort() }).toEqual({
      ...expected,
      stderr: isLeft ? end.stderr : '',
      signal: expected.code === null ? signal : null,
    });
  });

  it('ends the program at once if it is the second, with the runs on disk', async () => {
    const spool = temporaryFolder();
    onTestFinished(spool.remove);
    const env = { RUNSPAN_SPOOL_DIR: spool.path };
    const { child, ended, server } = await signalled(REGISTER, WORK, env, 'SIGTERM', () => 'hold');
    await server.arrived(1);
    child.kill('SIGTERM');
    const stderr = expect.stringMatching(/^runspan: undelivered runs \(2\) are on disk; .*\n$/);
    expect(await ended).toMatchObject({ signal: 'SIGTERM', stderr });
    expect(filesBelow(spool.path).filter((path) => path.endsWith('.seg'))).toHaveLength(1);
  });

  it.each([
    ['nothing is delivered yet', ''],
    [
      'the first copy has delivered everything',
      'while (stats().sent < 1) await new Promise((resolve) => setImmediate(resolve));',
    ],
  ])('delivers the runs of two versions of the package if %s', async (_, wait) => {
    await using server = await ingestServer();
    const folder = temporaryFolder();
    onTestFinished(folder.remove);
    mkdirSync(join(folder.path, 'copy'));
    for (const name of ['dist', 'package.json'])
      cpSync(join(root, name), join(folder.path, 'copy', name), { recursive: true });
    symlinkSync(join(root, 'node_modules'), join(folder.path, 'node_modules'));
    // Copies of one version share their exporters.
    const core = join(folder.path, 'copy/dist/chunks/core.js');
    writeFileSync(core, readFileSync(core, 'utf8').replaceAll(`${version}"`, '0.0.0"'));
    const program = startNode(
      moduleText(`
        const record = async (path, lingerMs) => {
          const { configure, startRun, stats } = await import(path);
          configure({ handleSignals: true, limits: { lingerMs } });
          startRun({ name: 'work' }).end();
          return stats;
        };
        const stats = await record(${JSON.stringify(join(root, 'dist/index.js'))}, ${wait === '' ? 600_000 : 1});
        ${wait}
        await record(${JSON.stringify(join(folder.path, 'copy/dist/index.js'))}, 600_000);
        console.log('ready');
        setInterval(() => {}, 60_000);
      `),
      { RUNSPAN_ENDPOINT: server.url, RUNSPAN_DEV: '{"limits":{"exitFlushMs":20000}}' },
    );
    await program.printed(/ready/);
    program.child.kill('SIGTERM');

    expect(await program.ended).toMatchObject({ signal: 'SIGTERM', stderr: '' });
    expect(server.received.flatMap(runNames)).toEqual(['work', 'work']);
  });
});

const own = ['--user', '--map-root-user', '--pid', '--fork', '--kill-child'];
const canBeFirst = spawnSync('unshare', [...own, 'true'], { stdio: 'ignore' }).status === 0;

// The kernel has no default for it: a SIGTERM that nobody listens for is ignored.
it.skipIf(!canBeFirst)(
  'the first process of a container survives the signal as without tracing, and delivers at each signal',
  async () => {
    await using server = await ingestServer();
    const program = moduleText(`
      import { configure, flush, startRun, stats } from 'runspan';
      configure({ limits: { lingerMs: 600_000, startDelayMs: 600_000 } });
      const job = startRun({ name: 'job' });
      const timer = setInterval(() => {}, 60_000);
      for (const name of ['first', 'second']) {
        startRun({ name }).end();
        const { sent } = stats();
        process.kill(process.pid, 'SIGTERM');
        while (stats().sent === sent) await new Promise((resolve) => setImmediate(resolve));
      }
      job.end();
      await flush();
      console.log(process.pid);
      process.exit(3);
    `);
    const env = { ...bareEnvironment(), RUNSPAN_ENDPOINT: server.url, RUNSPAN_DURABILITY: 'memory' };
    const node = [process.execPath, '--import', 'runspan/register', ...program];
    const child = spawn('unshare', [...own, ...node], { cwd: root, env, timeout: 25_000 });
    const [stdout, stderr, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')]);

    expect({ code, stdout, stderr, names: server.received.flatMap(runNames).sort() }).toEqual({
      code: 3,
      stdout: '1\n',
      stderr: '',
      // The job is interrupted at the first signal, and then ends after all.
      names: ['first', 'job', 'job', 'second'],
    });
  },
);
