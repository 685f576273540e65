import { describe, expect, it } from 'vitest';
import { type IngestServer, ingestServer, ingestServerInTest } from '../support/ingest-server.ts';
import { runNames } from '../support/multipart-reader.ts';
import { type Ended, moduleText, runNode, startNode } from '../support/program.ts';
import { startReceiver } from '../support/receiver.ts';

const exitProgram = (how: string, endpoint: string, exitFlushMs: number | 'untraced' = 20_000) =>
  runNode(['test/fixtures/exit-program.mjs', how, String(exitFlushMs)], {
    RUNSPAN_ENDPOINT: endpoint,
    RUNSPAN_DEV: JSON.stringify({ limits: { exitFlushMs } }),
  });

async function delivered(how: string): Promise<{ names: string[]; code: number | null; stderr: string }> {
  const receiver = await startReceiver({ strict: true });
  const { code, stderr } = await exitProgram(how, receiver.url);
  const runs = await receiver.runs();
  return { names: runs.map(({ name }) => name), code, stderr };
}

/** What a program in memory can do about lost runs. */
const KEEP = 'await `flush()` before the end, or set RUNSPAN_DURABILITY=spill to keep such runs on disk';

describe('the end of a program', () => {
  it.each(['shutdown', 'shutdown in beforeExit'])('delivers queued runs with %s', async (how) => {
    expect(await delivered(how)).toEqual({ names: ['work', 'work'], code: 0, stderr: '' });
  });

  it('delivers the start of a run that never ended', async () => {
    expect(await delivered('open')).toEqual({ names: ['work', 'work', 'never ended'], code: 0, stderr: '' });
  });

  it('delivers a run that never ended as a span, although nothing else waits', async () => {
    await using server = await ingestServer(() => ({ status: 200 }));
    const program = moduleText("import { startRun } from 'runspan'; startRun({ name: 'never ended' });");
    const env = { RUNSPAN_ENDPOINT: server.url, RUNSPAN_PROTOCOL: 'otlp-json' };
    expect(await runNode(program, env)).toMatchObject({ code: 0, stderr: '' });
    expect(server.received.map(({ body }) => String(body))).toEqual([expect.stringContaining('"never ended"')]);
  });

  it('is not prevented by runs that each `beforeExit` records', async () => {
    const { names, code, stderr } = await delivered('work in beforeExit');

    const lost = 'runspan: the process exits with undelivered runs (1), which are lost;';
    expect({ code, stderr }).toEqual({ code: 0, stderr: `${lost} ${KEEP}\n` });
    expect(names).toHaveLength(2 + 3);
  });

  it('is not delayed beyond the limit by such runs if the service hangs', async () => {
    await using server = await ingestServer(() => 'hold');

    expect(await exitProgram('work in beforeExit', server.url, 300)).toMatchObject({
      code: 0,
      stdout: '4\n4\n',
      stderr: `runspan: the process exits with undelivered runs (4), which are lost; ${KEEP}\n`,
    });
  });

  it('is not delayed further by exporters that give up a hanging service at different times', async () => {
    await using server = await ingestServer(() => 'hold');
    const program = `
      import { createExporter, startRun } from 'runspan';
      for (const exitFlushMs of [40, 100]) {
        process.env.RUNSPAN_DEV = JSON.stringify({ limits: { exitFlushMs } });
        startRun({ name: 'work', exporter: createExporter() }).end();
      }
      let ends = 0;
      process.on('beforeExit', () => {
        ends++;
        if (ends === 10) process.exit();
      });
      process.on('exit', () => console.log(ends));
    `;

    const { code, stdout } = await runNode(moduleText(program), { RUNSPAN_ENDPOINT: server.url });
    expect({ code, stdout }).toEqual({ code: 0, stdout: '2\n' });
  });

  it.each(['runs', 'otlp-json'])(
    'is not delayed further by requests of a `fetch` option that go on after their abort, as %s',
    async (protocol) => {
      await using server = await ingestServer(() => 'hold');
      const program = `
      import { configure, startRun } from 'runspan';
      const goingOn = (...args) => {
        setTimeout(() => {}, 300);
        return fetch(...args);
      };
      configure({ endpoint: '${server.url}', protocol: '${protocol}', fetch: goingOn, limits: { lingerMs: 60_000 } });
      startRun({ name: 'open' });
      startRun({ name: 'work' }).end();
      let ends = 0;
      process.on('beforeExit', () => ends++);
      process.on('exit', () => console.log(ends));
    `;

      const limits = { exitFlushMs: 100, retryDelayMs: 1 };
      const { code, stdout, stderr } = await runNode(moduleText(program), { RUNSPAN_DEV: JSON.stringify({ limits }) });
      expect({ code, stdout }).toEqual({ code: 0, stdout: '2\n' });
      expect(stderr).toContain('the process exits with undelivered runs (2)');
    },
  );

  it('delivers a run that was sent as incomplete, and ends when the program goes on', async () => {
    const program = `
      import { configure, startRun, stats } from 'runspan';
      let status = 503;
      configure({ endpoint: 'http://127.0.0.1', fetch: async () => new Response('{}', { status }) });
      const old = startRun({ name: 'old' });
      startRun({ name: 'work' }).end();
      const goOn = () => {
        status = 202;
        old.end();
      };
      process.once('beforeExit', () => setTimeout(goOn, 1_500));
      process.on('exit', () => console.log(stats().sent));
    `;

    const limits = { exitFlushMs: 1_000, openRuns: 1, retryDelayMs: 1, retryDelayMaxMs: 2 };
    const { stdout } = await runNode(moduleText(program), { RUNSPAN_DEV: JSON.stringify({ limits }) });
    expect(stdout).toBe('2\n');
  });

  it('delivers runs of a program that goes on after the service was given up', async () => {
    await using server = await ingestServer((_, index) => (index === 0 ? 'hold' : { status: 202 }));
    const program = `
      import { configure, startRun } from 'runspan';
      configure({ endpoint: '${server.url}', limits: { lingerMs: 60_000 } });
      startRun({ name: 'first' }).end();
      process.once('beforeExit', () => setTimeout(() => startRun({ name: 'later' }).end(), 4_000));
    `;

    const limits = { exitFlushMs: 3_000, retryDelayMs: 1, retryDelayMaxMs: 1 };
    await runNode(moduleText(program), { RUNSPAN_DEV: JSON.stringify({ limits }) });
    expect(server.received.map(({ body }) => /"name":"(\w+)"/.exec(body.toString())?.[1])).toEqual(['first', 'later']);
  });

  it('is not delayed by the compression of runs that wait', async () => {
    await using server = await ingestServer(() => ({ status: 503 }));
    const program = `
      import { subscribe } from 'node:diagnostics_channel';
      import { configure, startRun, stats } from 'runspan';
      configure({ limits: { batchBytes: 2 ** 20 } });
      startRun({ name: 'work' }).end();
      const alive = setInterval(() => {}, 1_000);
      await new Promise((resolve) => subscribe('runspan:delivery:outage', resolve));
      clearInterval(alive);
      const inputs = { text: 'the history of a conversation '.repeat(2 ** 15) };
      for (let runs = 0; runs < 32; runs++) startRun({ name: 'work', inputs }).end();
      const waitingBytes = [];
      process.on('beforeExit', () => waitingBytes.push(stats().backlog.bytes));
      process.on('exit', () => console.log(waitingBytes.length, waitingBytes[1] > 2 ** 24));
    `;

    const env = { RUNSPAN_ENDPOINT: server.url, RUNSPAN_DEV: '{"limits":{"exitFlushMs":1}}' };
    const { code, stdout } = await runNode(moduleText(program), env);
    expect({ code, stdout }).toEqual({ code: 0, stdout: '2 true\n' });
  });

  it('waits for an awaited flush up to its timeout if the service hangs', async () => {
    await using server = await ingestServer(() => 'hold');
    const program = `
      import { flush, startRun } from 'runspan';
      startRun({ name: 'work' }).end();
      console.log(await flush({ timeoutMs: 50 }));
      process.exit(0);
    `;

    expect(await runNode(moduleText(program), { RUNSPAN_ENDPOINT: server.url, RUNSPAN_LOG: 'silent' })).toMatchObject({
      code: 0,
      stdout: '{ ok: false, pending: 1 }\n',
      stderr: '',
    });
  });
});

/** Standard error without our own lines, and without Node's own frames of a stack, of which an AsyncLocalStorage makes more. */
const told = ({ stderr }: Ended): string => stderr.replaceAll(/^runspan: .*\n|^ +at .*node:.*\n/gm, '');

it.each([
  ['exit code', ''],
  ['exit in beforeExit', ''],
  ['exit in exit', ''],
  ['exit in exit, twice', ''],
  ['throw', ''],
  ['throw a string', ''],
  ['throw in exit', ''],
  ['throw, and somebody listens', ''],
  ['reject', ''],
  ['reject nothing', ''],
  ['reject, and somebody listens', ''],
  ['abort', ''],
  ['shutdown in beforeExit', ''],
  ['shutdown in exit', ''],
])('the end of a program is the same without tracing after: %s%s', async (how) => {
  await using server = await ingestServer();
  const [traced, bare] = await Promise.all([exitProgram(how, server.url), exitProgram(how, server.url, 'untraced')]);

  expect({ ...traced, stderr: told(traced) }).toEqual({ ...bare, stderr: told(bare) });
});

describe('a process with tracing', () => {
  const run = (code: string, { url }: IngestServer): Promise<Ended> =>
    runNode(moduleText(code), { RUNSPAN_ENDPOINT: url });

  it('has no worker thread of the library', async () => {
    const program = `
      import { Worker } from 'node:worker_threads';
      import { flush, shutdown, startRun } from 'runspan';
      let workers = 0;
      process.on('worker', () => workers++);
      for (let n = 0; n < 100; n++) startRun({ name: 'work' }).end();
      await flush();
      const ours = workers;
      await new Promise((resolve) => new Worker('', { eval: true }).on('exit', resolve));
      await shutdown();
      console.log(ours, workers);
    `;

    expect(await run(program, await ingestServerInTest())).toMatchObject({ code: 0, stdout: '0 1\n', stderr: '' });
  });

  it('continues if standard error is closed', async () => {
    const server = await ingestServerInTest();
    const program = startNode(
      moduleText(`
        import { once } from 'node:events';
        import { configure, shutdown, startRun } from 'runspan';
        process.on('uncaughtException', (error) => console.log('uncaught ' + error));
        process.on('unhandledRejection', (error) => console.log('unhandled ' + error));
        console.log('ready');
        await once(process.stdin, 'data');
        for (let n = 0; n < 100; n++) configure({ ['unknown' + n]: true });
        startRun({ name: 'work' }).end();
        console.log(await shutdown());
        process.stdin.destroy();
      `),
      { RUNSPAN_ENDPOINT: server.url },
    );
    await program.printed(/ready/);
    program.child.stderr?.destroy();
    program.child.stdin?.write('go\n');

    expect(await program.ended).toMatchObject({ code: 0, stdout: 'ready\n{ ok: true, pending: 0 }\n' });
  });
});

const ending = async (worker: string): Promise<Ended & { names: string[] }> => {
  await using server = await ingestServer();
  const code = `
      import { Worker } from 'node:worker_threads';
      const events = ['SIGTERM', 'SIGINT', 'SIGHUP', 'beforeExit', 'uncaughtException', 'unhandledRejection'];
      const counts = () => events.map((event) => process.listenerCount(event)).join();
      const worker = new Worker(${JSON.stringify(`
        import { parentPort } from 'node:worker_threads';
        import { configure, flush, startRun } from 'runspan';
        configure({ handleSignals: true, limits: { lingerMs: 60_000 } });
        startRun({ name: 'in a thread' }).end();
        ${worker}
      `)}, { eval: true });
      const before = counts();
      worker.on('message', async () => {
        console.log(before === counts());
        await worker.terminate();
        console.log('terminated');
      });
      worker.on('exit', () => console.log('the thread has ended'));
    `;
  const env = { RUNSPAN_ENDPOINT: server.url, RUNSPAN_DEV: '{"limits":{"exitFlushMs":20000}}' };
  const ended = await runNode(moduleText(code), env);
  return { ...ended, names: server.received.flatMap(runNames) };
};

const stays = "parentPort.postMessage('ready'); setInterval(() => {}, 60_000);";
it.each([
  ['delivers queued runs when it ends normally', '', 'the thread has ended\n', ['in a thread']],
  ['has no listeners in the process, and may be terminated', stays, 'true\nthe thread has ended\nterminated\n', []],
])('a worker thread %s', async (_, code, stdout, names) => {
  expect(await ending(code)).toEqual({ code: 0, signal: null, stdout, stderr: '', names });
});
