import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import type { RequestListener } from 'node:http';
import { build, type Rollup } from 'vite';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { Proxies } from '#src/http/connections.ts';
import { root } from '../support/folders.ts';
import { gate } from '../support/gate.ts';
import { bareEnvironment, moduleText, runNode } from '../support/program.ts';
import { byProxy, named, proxy } from './proxy.ts';
import { serve } from './server.ts';

/** The client as one module of plain JavaScript, made of the sources as they are. */
let source: Promise<string> | undefined;

async function clientSource(): Promise<string> {
  const made = await build({
    configFile: false,
    logLevel: 'silent',
    root,
    build: { ssr: 'src/http/client.ts', write: false, minify: false },
  });
  return (made as Rollup.RollupOutput).output[0].code;
}

/**
 * Runs a program that has `client` in a process of its own. The process is held by its channel to this one alone, which
 * `letGo` closes: whatever else holds it from then on is the client's.
 */
async function runProgram(
  url: string,
  program: string,
  proxies?: Proxies,
): Promise<{ child: ChildProcess; letGo: () => Promise<number> }> {
  source ??= clientSource();
  const code = `${await source}
    process.on('message', () => {});
    const timeouts = { connectTimeoutMs: 600_000, requestTimeoutMs: 600_000 };
    const client = new HttpClient({ endpoint: new URL(${JSON.stringify(url)}), headers: {}, ...timeouts, proxies: ${JSON.stringify(proxies)} });
    const post = { method: 'POST', path: '/runs', body: ['{}'] };
    ${program}`;
  const child = spawn(process.execPath, ['--input-type=module', '--eval', code], {
    cwd: root,
    env: bareEnvironment(),
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  const exit = once(child, 'exit');
  const letGo = async (): Promise<number> => {
    child.disconnect();
    return (await exit)[0] as number;
  };
  return { child, letGo };
}

describe('a process ends by itself', () => {
  test.each<[string, string, RequestListener]>([
    ['its request hangs', 'client.send(post);', () => {}],
    ['a response never ends', 'client.send(post);', (_, response) => response.writeHead(200).write('{')],
    [
      'its second request hangs on the connection of the first',
      'client.send(post).then(() => setImmediate(() => client.send({ ...post, path: "/last" })));',
      (request, response) => void (request.url === '/last' || response.end()),
    ],
  ])('while %s', async (_, program, listener) => {
    const arrived = gate();
    const { url, connections } = await serve((request, response) => {
      listener(request, response);
      if (!response.writableEnded) arrived.open();
    });
    const { letGo } = await runProgram(url, program);
    await arrived;
    expect(connections()).toBe(1);
    expect(await letGo()).toBe(0);
  });

  test('while its connection is kept for the next request', async () => {
    const { url } = await serve();
    const { child, letGo } = await runProgram(url, 'client.send(post).then(({ status }) => process.send(status));');
    expect((await once(child, 'message'))[0]).toBe(204);
    expect(await letGo()).toBe(0);
  });

  test.each(['http', 'https'])('while a proxy has the tunnel for %s wait', async (protocol) => {
    const arrived = gate();
    const { server, url } = await serve();
    server.on('connect', () => arrived.open());
    const { letGo } = await runProgram(`${protocol}://service.test`, 'client.send(post);', byProxy(url));
    await arrived;
    expect(await letGo()).toBe(0);
  });

  test('while its request hangs in a tunnel', async () => {
    const arrived = gate();
    const { url } = await serve(() => arrived.open());
    const by = await proxy();
    const { letGo } = await runProgram(named(url), 'client.send(post);', byProxy(by.url));
    await arrived;
    expect(await letGo()).toBe(0);
  });
});

/** How a program ends that waits for `client`, which holds the process; with 13 when it ends before what it waits for. */
async function endOf(url: string, program: string, requestTimeoutMs = 600_000): Promise<number | null> {
  source ??= clientSource();
  const timeouts = `connectTimeoutMs: 600_000, requestTimeoutMs: ${requestTimeoutMs}`;
  const options = `{ endpoint: new URL(${JSON.stringify(url)}), headers: {}, ${timeouts}, holdsProcess: true }`;
  const code = `${await source}
    const client = new HttpClient(${options});
    const get = (path) => ({ method: 'GET', path });
    ${program}`;
  return (await runNode(moduleText(code))).code;
}

describe('a process that waits for its request', () => {
  test('is kept until the deadline', async () => {
    const { url } = await serve(() => {});
    const program =
      "process.exitCode = await client.open(get('/')).catch(({ name }) => name === 'DeadlineError' ? 7 : 1);";
    expect(await endOf(url, program, 50)).toBe(7);
  });

  test('is kept until the deadline by a dispatcher that has nothing open', async () => {
    const program = `const dispatcher = { request: () => new Promise(() => {}) };
      const other = new HttpClient({ endpoint: new URL('http://127.0.0.1:9'), headers: {}, requestTimeoutMs: 20, dispatcher, holdsProcess: true });
      process.exitCode = await other.open(get('/')).catch(() => 7);`;
    expect(await endOf('http://127.0.0.1:9', program)).toBe(7);
  });

  test('is kept while it reads a body, and ends though the connection is kept', async () => {
    const begun = gate<() => void>();
    const { url, connections } = await serve((request, response) => {
      if (request.url === '/go') void begun.then((end) => end());
      else response.write('a', () => begun.open(() => response.end('b')));
      if (request.url === '/go') response.end();
    });
    const program = `const { body } = await client.open(get('/'));
      void client.send(get('/go'));
      let text = '';
      for await (const chunk of body) text += chunk;
      process.exitCode = text === 'ab' ? 7 : 1;`;
    expect(await endOf(url, program)).toBe(7);
    expect(connections()).toBe(2);
  });
});
