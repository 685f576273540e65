import { createHmac } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, renameSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer, request } from 'node:http';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { serve } from '../http/server.ts';
import { openLocalStore, runsIn, storePath } from '../receiver/local-store.ts';
import { listenInTest } from '../support/listen-in-test.ts';
import { type Ended, moduleText, runNode, type Started, startRunspan } from '../support/program.ts';
import { segmentsBelow } from '../support/spool.ts';
import { testFolder } from '../support/test-folder.ts';
import { withoutSqlite } from '../support/without-sqlite.ts';

/** Each test starts several programs, which need more time on a loaded machine. */
const LIFE_MAX_MS = 60_000;
vi.setConfig({ testTimeout: LIFE_MAX_MS });

const index = new URL('../../dist/index.js', import.meta.url).href;

/** The arguments that start a program, which may use `flush`, `startRun` and `named`, a function that traces one call. */
const program = (code: string): string[] => [
  '--',
  process.execPath,
  ...moduleText(`
    import { configure, flush, startRun, traceable } from '${index}';
    const named = (name) => traceable(() => {}, { name })();
    const closed = () => new Promise((end) => process.stdin.on('end', end).resume());
    ${code}`),
];

const USING = /using the receiver at (http:\/\/127\.0\.0\.1:\d+), whose page shows the traces/;
const LISTENS = /runspan listens on (http:\/\/127\.0\.0\.1:\d+)\n/;

const start = (args: readonly string[], env: Readonly<Record<string, string>>): Started =>
  startRunspan(args, env, undefined, LIFE_MAX_MS);

/** Starts the receiver of a store on a free port. It runs a program, or until the test kills it. */
async function owner(file: string, args: readonly string[] = []): Promise<Started & { url: string }> {
  const started = start(['dev', '--port', '0', ...args], { RUNSPAN_STORE: file });
  onTestFinished(() => void started.child.kill('SIGKILL'));
  const [, url = ''] = await started.printed(LISTENS);
  return { ...started, url };
}

const dev = (file: string, args: readonly string[], env = {}): Promise<Ended> =>
  start(['dev', ...args], { RUNSPAN_STORE: file, ...env }).ended;

/** Starts a program under a receiver, which is killed as soon as the program is ready. */
async function withoutReceiver(code: string) {
  const file = storePath();
  const first = await owner(file);
  const second = start(['dev', ...program(code)], { RUNSPAN_STORE: file });
  await second.printed(/ready/);
  first.child.kill('SIGKILL');
  await first.ended;
  return { file, first, second };
}

const stored = async (file: string) => await runsIn(await openLocalStore(file));

const namesIn = async (file: string): Promise<string[]> => (await stored(file)).map(({ name }) => name).sort();

async function statusesAt(url: string): Promise<string[]> {
  const { items } = (await (await fetch(`${url}/query/runs`)).json()) as { items: { name: string; status: string }[] };
  return items.map(({ name, status }) => `${name}: ${status}`).sort();
}

interface RegisteredFile {
  readonly url: string;
  readonly token: string;
}

const registered = (file: string): RegisteredFile => JSON.parse(readFileSync(`${file}-receiver`, 'utf8'));

const register = (file: string, content: object, mode = 0o600): void =>
  writeFileSync(`${file}-receiver`, JSON.stringify(content), { mode });

const INTERRUPTED = 'Interrupted: the program ended before the run did';

describe('a second runspan dev for the same store', () => {
  it('runs its program against the first receiver, and draws only the traces of its program', async () => {
    const file = storePath();
    const first = await owner(file, program(`named('of the first'); console.log('ready'); await closed();`));
    await first.printed(/of the first · chain/);
    const { token } = registered(file);
    const print = `named('of the second'); console.log(JSON.stringify(process.env)); process.exitCode = 7;`;
    const second = await dev(file, program(print));
    const info = await (await fetch(`${first.url}/info`)).text();
    first.child.stdin?.end();
    const { stdout, stderr, code } = await first.ended;

    expect([second.code, second.stderr]).toEqual([7, '']);
    expect(second.stdout).toMatch(USING);
    expect(second.stdout).toContain(`"RUNSPAN_ENDPOINT":"${first.url}"`);
    expect(second.stdout).toMatch(/^of the second · chain/m);
    expect(second.stdout).not.toContain('of the first');
    expect([code, stderr]).toEqual([0, '']);
    expect(stdout).not.toContain('of the second');
    for (const text of [second.stdout, stdout, info]) expect(text).not.toContain(token);
    expect(await namesIn(file)).toEqual(['of the first', 'of the second']);
    expect(existsSync(`${file}-receiver`)).toBe(false);
    expect(readdirSync(`${file}-spool`)).toEqual([]);
  });

  it('draws its runs after process.exit(), after a kill, and those of the langsmith package and of OTLP', async () => {
    const file = storePath();
    const first = await owner(file);
    const attributes = [{ key: 'gen_ai.operation.name', value: { stringValue: 'invoke_agent' } }];
    const span = { traceId: '5b8efff798038103d269b633813fc60c', spanId: 'eee19b7ec3c1b174', name: 'span', attributes };
    const times = { startTimeUnixNano: '1544712660000000000', endTimeUnixNano: '1544712661000000000' };
    const body = JSON.stringify({ resourceSpans: [{ scopeSpans: [{ spans: [{ ...span, ...times }] }] }] });
    const [exited, killed, theirs] = await Promise.all([
      dev(file, program(`named('exited'); process.exit(3);`)),
      dev(
        file,
        program(`named('killed'); await flush(); process.kill(process.pid, 'SIGTERM'); setInterval(() => {}, 9);`),
      ),
      dev(
        file,
        program(`
          const { Client } = await import('langsmith');
          const client = new Client();
          const run = { id: crypto.randomUUID(), name: 'theirs', run_type: 'tool', inputs: {}, start_time: Date.now() };
          await client.createRun(run);
          await client.awaitPendingTraceBatches();
          const [, id] = /x-runspan-program=([^,]*)/.exec(process.env.OTEL_EXPORTER_OTLP_HEADERS);
          const headers = { 'content-type': 'application/json', 'x-runspan-program': id };
          const url = process.env.OTEL_EXPORTER_OTLP_ENDPOINT + '/v1/traces';
          await fetch(url, { method: 'POST', headers, body: '${body}' });`),
      ),
    ]);
    first.child.kill('SIGINT');
    const { stdout } = await first.ended;

    expect([exited.code, killed.signal, theirs.code]).toEqual([3, 'SIGTERM', 0]);
    expect(exited.stdout.match(/^\w+ · .*$/gm)).toEqual([expect.stringMatching(/^exited · chain/)]);
    expect(killed.stdout.match(/^\w+ · .*$/gm)).toEqual([expect.stringMatching(/^killed · chain/)]);
    const drawn = theirs.stdout.match(/^\w+ · .*$/gm)?.sort();
    expect(drawn).toEqual([
      expect.stringMatching(/^span · /),
      expect.stringMatching(new RegExp(`^theirs · tool · .* · interrupted · ✗ ${INTERRUPTED}`)),
    ]);
    // Without a command, the first receiver draws every trace.
    for (const name of ['exited', 'killed', 'theirs', 'span']) expect(stdout).toMatch(new RegExp(`^${name} · `, 'm'));
  });

  it('prints JSON with --json, and nothing but the output of the program with --quiet', async () => {
    const file = storePath();
    await owner(file);
    const code = `named('traced'); console.log('of the program');`;
    const [json, quiet] = await Promise.all([
      dev(file, ['--json', ...program(code)]),
      dev(file, ['--quiet', ...program(code)]),
    ]);
    expect(json.stderr).toBe('of the program\n');
    expect(JSON.parse(json.stdout)).toMatchObject({ format: 'runspan-trace', runs: [{ name: 'traced' }] });
    expect(quiet.stdout).toBe('of the program\n');
    expect(quiet.stderr).toMatch(USING);
  });

  it('names the address of the first receiver if it has no command', async () => {
    const file = storePath();
    const { url, printed } = await owner(file);
    await printed(/start it in another terminal: npx runspan dev -- <command>\n/);
    const { code, stdout, stderr } = await dev(file, ['--json']);
    expect([code, stdout]).toEqual([1, '']);
    expect(stderr).toBe(
      `runspan: a receiver already runs at ${url}: open this address, or start a program with \`runspan dev -- <command>\`\n`,
    );
  });

  it('prints the last 20 traces of a program, and all with --json', async () => {
    const file = storePath();
    await owner(file);
    const code = `for (let at = 1; at < 23; at += 1) named('trace ' + at);`;
    const [some, json] = await Promise.all([dev(file, program(code)), dev(file, ['--json', ...program(code)])]);
    expect(some.stderr).toBe('runspan: 2 earlier traces of the command are only on the page\n');
    expect(some.stdout.match(/^trace \d+ · chain/gm)).toHaveLength(20);
    expect(some.stdout).not.toMatch(/^trace [12] · /m);
    expect(json.stdout.trim().split('\n')).toHaveLength(22);
  });

  it('names the variable of the key that the receiver requires', async () => {
    const file = storePath();
    const key = { RUNSPAN_RECEIVER_KEY: 'sesame' };
    const first = start(['dev', '--port', '0'], { RUNSPAN_STORE: file, ...key });
    onTestFinished(() => void first.child.kill('SIGKILL'));
    const [, url = ''] = await first.printed(LISTENS);
    const without = await dev(file, ['--', 'true']);
    expect(without).toMatchObject({ code: 1, stdout: '' });
    expect(without.stderr).toBe(`runspan: the receiver at ${url} requires a key; set RUNSPAN_RECEIVER_KEY\n`);
    const wrong = await dev(file, ['--', 'true'], { RUNSPAN_RECEIVER_KEY: 'mellon' });
    expect(wrong.stderr).toBe(`runspan: the receiver at ${url} rejected the key in RUNSPAN_RECEIVER_KEY\n`);
    const withKey = await dev(file, program(`startRun({ name: 'left' }); await flush();`), key);
    expect([withKey.code, withKey.stderr]).toEqual([0, '']);
    expect(withKey.stdout).toMatch(/^left · chain .* interrupted/m);
  });

  it.each(['--port 0', '--store', '--memory'])('starts a receiver of its own with %s', async (line) => {
    const file = storePath();
    const first = await owner(file);
    const other = line === '--store' ? ['--store', storePath()] : line.split(' ');
    const { code, stdout, stderr } = await dev(file, [...other, '--', 'true']);
    if (line === '--port 0') {
      expect([code, stdout]).toEqual([1, '']);
      for (const text of [file, `process ${first.child.pid}`, `whose receiver listens on ${first.url}`])
        expect(stderr).toContain(text);
      expect(stderr).toContain('without --port, this command uses that receiver, and with --memory its own');
    } else {
      expect(code).toBe(0);
      expect(LISTENS.exec(stdout)?.[1]).not.toBe(first.url);
    }
  });
});

describe('the open runs of an attached program', () => {
  const open = (name: string): string => `startRun({ name: '${name}' }); await flush(); console.log('sent');`;

  it('are ended as interrupted when the program ends or its terminal closes, and those of other programs stay open', async () => {
    const file = storePath();
    const first = await owner(file);
    const waiting = start(['dev', ...program(`${open('waiting')} await closed();`)], { RUNSPAN_STORE: file });
    const left = start(['dev', ...program(`${open('left')} await closed();`)], { RUNSPAN_STORE: file });
    await Promise.all([waiting.printed(/sent/), left.printed(/sent/)]);
    const ended = await dev(file, program(open('ended')));
    expect(ended.stdout).toMatch(new RegExp(`^ended · chain · .* · interrupted · ✗ ${INTERRUPTED}`, 'm'));
    left.child.kill('SIGHUP');
    expect((await left.ended).signal).toBe('SIGHUP');
    await runNode(program(open('alone')).slice(2), { RUNSPAN_ENDPOINT: first.url });
    expect(await statusesAt(first.url)).toEqual([
      'alone: pending',
      'ended: interrupted',
      'left: interrupted',
      'waiting: pending',
    ]);
    waiting.child.stdin?.end();
    expect(await waiting.ended).toMatchObject({ code: 0, stderr: '' });
  });
});

it(
  'of ten commands that start at once, one is the receiver, and all programs run',
  async () => {
    const file = storePath();
    const names = Array.from({ length: 10 }, (_, at) => `program ${at}`);
    const started = names.map((name) =>
      start(['dev', ...program(`named('${name}'); console.log('ready'); await closed();`)], { RUNSPAN_STORE: file }),
    );
    await Promise.all(started.map(({ printed }) => printed(/ready/)));
    const isOwner = await Promise.all(started.map(async ({ printed }) => LISTENS.test(`${await printed(/^.*\n/)}`)));
    const endAll = (wanted: boolean): Promise<Ended[]> =>
      Promise.all(
        started.flatMap(({ child, ended }, at) => {
          if (isOwner[at] !== wanted) return [];
          child.stdin?.end();
          return ended;
        }),
      );
    // The receiver ends after the other programs.
    const [others, owners] = [await endAll(false), await endAll(true)];
    expect([others.length, owners.length]).toEqual([9, 1]);
    const drawn = [...others, ...owners].map(({ stdout }) => stdout.match(/program \d(?= · chain)/g));
    expect(drawn.sort()).toEqual(names.map((name) => [name]));
    expect([...others, ...owners].map(({ code }) => code)).toEqual(names.map(() => 0));
    expect(await namesIn(file)).toEqual(names);
  },
  2 * LIFE_MAX_MS,
);

describe('when the receiver is killed while an attached program runs', () => {
  it('the runs wait on disk for the next receiver of the store, and none is lost or stored twice', async () => {
    const code = `
      const runs = [];
      const record = (name) => { const run = startRun({ name }); run.end(); runs.push(run.id); };
      record('before');
      await flush();
      console.log('ready');
      await closed();
      record('after');
      await flush({ timeoutMs: 100 });
      record('at the end');
      configure({ endpoint: 'http://127.0.0.1:9' });
      startRun({ name: 'for another service' }).end();
      console.log('ids', JSON.stringify(runs));
      process.exit(5);`;
    const { file, first, second } = await withoutReceiver(code);
    second.child.stdin?.end();
    const { code: exitCode, stdout, stderr } = await second.ended;
    expect(exitCode).toBe(5);
    expect(stderr).toContain(
      `runspan: the receiver of the store has ended, or does not respond at ${first.url}, so no traces are printed here\n`,
    );
    expect(stderr).toMatch(
      /unsent runs of the command \([23]\) wait on disk; a running `runspan dev`, or the next one, stores them\./,
    );
    expect(segmentsBelow(`${file}-spool`)).not.toEqual([]);
    // Another process may get the number of the command, for example in the next container.
    const [folder = ''] = readdirSync(`${file}-spool`);
    renameSync(join(`${file}-spool`, folder), join(`${file}-spool`, folder.replace(/-\d+-/, `-${process.pid}-`)));

    const next = await dev(file, ['--', 'true']);
    expect(next.code).toBe(0);
    const [, ids = ''] = /^ids (.*)$/m.exec(stdout) ?? [];
    const runs = await stored(file);
    expect(runs.map(({ id }) => id).sort()).toEqual(JSON.parse(ids).sort());
    expect(runs.map(({ end_time }) => typeof end_time)).toEqual(['string', 'string', 'string']);
    // The run for the other service stays on disk.
    expect(segmentsBelow(`${file}-spool`)).toHaveLength(1);
  });

  it('a run is not lost if the receiver has ended and a signal kills the program', async () => {
    const code = `console.log('ready'); await closed(); named('after'); console.log('recorded'); setInterval(() => {}, 9);`;
    const { file, second } = await withoutReceiver(code);
    second.child.stdin?.end();
    await second.printed(/recorded/);
    second.child.kill('SIGTERM');
    expect((await second.ended).stderr).toMatch(
      /unsent runs of the command \(1\) wait on disk; a running `runspan dev`/,
    );
    expect(segmentsBelow(`${file}-spool`)).toHaveLength(1);
  });

  it('the next receiver that runs when the program ends stores its runs', async () => {
    const code = `console.log('ready'); await closed(); named('after'); process.exit();`;
    const { file, second } = await withoutReceiver(code);
    const next = await owner(file);
    second.child.stdin?.end();
    await second.ended;
    await next.printed(/after · chain/);
    expect(await statusesAt(next.url)).toEqual(['after: success']);
    expect(readdirSync(`${file}-spool`)).toEqual([]);
  });

  it('runs of another program do not hide that none of a program has arrived', async () => {
    const file = storePath();
    const first = await owner(file, program(`console.log('ready'); await closed();`));
    await first.printed(/ready/);
    expect(await dev(file, program(`named('of another');`))).toMatchObject({ code: 0, stderr: '' });
    first.child.stdin?.end();
    expect((await first.ended).stderr).toMatch(/^runspan: no run of the command arrived: /);
  });
});

describe('a file of a receiver is not believed', () => {
  const TOKEN = 'ab'.repeat(32);

  /** Runs a command for a store with such a file, which starts a receiver of its own. */
  async function expectOwnReceiver(file: string): Promise<void> {
    const { code, stdout, stderr } = await dev(file, ['--', 'true']);
    expect([
      code,
      stderr.replace(/^runspan: (port 4777 is in use by|no run of the command arrived:) .*\n/gm, ''),
    ]).toEqual([0, '']);
    expect(stdout).toMatch(LISTENS);
  }

  it('if nothing listens on its port', async () => {
    const file = storePath();
    const first = await owner(file);
    first.child.kill('SIGKILL');
    await first.ended;
    expect(registered(file).url).toBe(first.url);
    await expectOwnReceiver(file);
    expect(existsSync(`${file}-receiver`)).toBe(false);
  });

  it('if another program listens on its port, which answers without a proof, with another one, or not at all', async () => {
    const proofs: string[] = [];
    for (const answer of [
      undefined,
      // The proof for an earlier nonce.
      (port: string) =>
        createHmac('sha256', TOKEN)
          .update(`${'00'.repeat(32)} ${port}`)
          .digest('hex'),
    ]) {
      const { url, seen } = await serve((message, response) => {
        const proof = answer?.(`${message.socket.localPort}`);
        if (proof !== undefined) proofs.push(proof);
        response.writeHead(200, proof === undefined ? {} : { 'x-runspan-proof': proof }).end('{"version":"0.1.0"}');
      });
      const file = storePath();
      register(file, { url, pid: 1, token: TOKEN });
      await expectOwnReceiver(file);
      expect(seen.map((one) => one.url)).toEqual(['/info']);
      expect(JSON.stringify(seen)).not.toContain(TOKEN);
    }
    expect(proofs).toHaveLength(1);
    const { url, seen } = await serve(() => {});
    const file = storePath();
    register(file, { url, pid: 1, token: TOKEN });
    await expectOwnReceiver(file);
    expect(seen).toHaveLength(1);
  });

  it('if the program on its port relays requests to the receiver with this token', async () => {
    const real = storePath();
    const first = await owner(real);
    const proofs: unknown[] = [];
    const relay = createServer((message, response) => {
      const { host: _, ...headers } = message.headers;
      request(new URL(message.url ?? '', first.url), { headers }, (answer) => {
        proofs.push(answer.headers['x-runspan-proof']);
        answer.pipe(response.writeHead(answer.statusCode ?? 0, answer.headers));
      }).end();
    });
    const url = await listenInTest(relay);
    const file = storePath();
    register(file, { ...registered(real), url });
    await expectOwnReceiver(file);
    expect(proofs).toEqual([expect.stringMatching(/^[\da-f]{64}$/)]);
  });

  it('if other users can read it, if it is a symbolic link, or if it is not for this machine', async () => {
    const real = storePath();
    await owner(real);
    const content = registered(real);
    const [readable, linked, remote] = [storePath(), storePath(), storePath()];
    register(readable, content, 0o644);
    symlinkSync(`${real}-receiver`, `${linked}-receiver`);
    register(remote, { ...content, url: 'http://192.0.2.1:4777' });
    for (const file of [readable, linked, remote]) await expectOwnReceiver(file);
    // The receivers have replaced the link instead of the file behind it.
    expect(registered(real)).toEqual(content);
  });
});

it('if another program uses the default port, the program starts, and one line says so', async () => {
  const server = createServer();
  // If the port is in use already, the test needs no server.
  await new Promise<void>((done) => void server.on('error', () => done()).listen(4777, '127.0.0.1', done));
  onTestFinished(() => void server.close());
  const { code, stdout, stderr } = await dev('memory', program(`named('traced');`));
  expect(code).toBe(0);
  expect(stderr).toBe('runspan: port 4777 is in use by another program, so the receiver listens on another port\n');
  expect(stdout).toMatch(/traced · chain/);
});

it('without SQLite, a second command attaches to the receiver that keeps runs in memory', async () => {
  const home = testFolder();
  const env = { HOME: home, RUNSPAN_STORE: '', NODE_OPTIONS: withoutSqlite(home) };
  const first = start(['dev', ...program(`named('first'); await closed();`)], env);
  await first.printed(/first · chain/);
  const second = await start(['dev', ...program(`named('second');`)], env).ended;
  first.child.stdin?.end();
  const { code, stdout, stderr } = await first.ended;
  expect([code, stdout]).toEqual([0, expect.not.stringContaining('second')]);
  expect(stderr).toContain('runs are kept in memory only');
  expect(second).toMatchObject({ code: 0, stderr: '' });
  expect(second.stdout).toMatch(USING);
  expect(second.stdout).toMatch(/^second · chain/m);
});
