import { createServer, type Socket } from 'node:net';
import { inspect } from 'node:util';
import type { Dispatcher } from 'undici';
import { describe, expect, test, vi } from 'vitest';
import { type ConfigureOptions, createExporter, type Exporter, startRun, stats } from '#src/index.ts';
import { serve } from '../http/server.ts';
import { call, start } from '../receiver/wire.ts';
import { addsUp } from '../support/adds-up.ts';
import { environmentOf, tune } from '../support/environment.ts';
import { ingestServerInTest } from '../support/ingest-server.ts';
import { listenInTest } from '../support/listen-in-test.ts';
import { logLines } from '../support/log-lines.ts';
import { readJsonParts } from '../support/multipart-reader.ts';

const KEY = 'sk-canary-of-the-key';
const HEADER = 'canary-of-a-header';
const USER = 'canary-user';
const PASSWORD = 'canary-password';
const INPUT = 'canary-of-an-input';
const CANARY = /canary/;

function printed(): string[] {
  const texts = logLines();
  for (const stream of [process.stdout, process.stderr]) {
    vi.spyOn(stream, 'write').mockImplementation((text) => texts.push(String(text)) > 0);
  }
  for (const level of ['log', 'info', 'warn', 'error', 'debug'] as const) {
    vi.spyOn(console, level).mockImplementation((...args) => void texts.push(args.join(' ')));
  }
  return texts;
}

/** Returns everything that inspecting or serializing an object shows. */
function looksOf(object: object): string {
  const shown = [inspect(object, { depth: null, showHidden: true, getters: true }), JSON.stringify(object)];
  try {
    shown.push(inspect(structuredClone(object), { depth: null }));
  } catch (thrown) {
    shown.push(inspect(thrown, { depth: null }));
  }
  return shown.join('\n');
}

/** Traces a call with secrets through an exporter with secrets, and returns everything that is visible. */
async function seenOf(
  options: ConfigureOptions,
): Promise<{ seen: string; exporter: Exporter; lines: readonly string[] }> {
  environmentOf();
  tune({ retryDelayMs: 1, retryDelayMaxMs: 1 });
  const lines = printed();
  const exporter = createExporter({
    apiKey: KEY,
    headers: { 'x-team-token': HEADER },
    limits: { lingerMs: 1, requestTimeoutMs: 50 },
    onDrop: (...args) => lines.push(JSON.stringify(args)),
    ...options,
  });
  const run = startRun({ name: 'ask', exporter, inputs: { password: INPUT }, metadata: { apiKey: INPUT } });
  const shown = [looksOf(exporter), looksOf(run)];
  run.end({ authorization: INPUT });
  await exporter.close({ timeoutMs: 100 });
  shown.push(looksOf(exporter), looksOf(run), JSON.stringify([exporter.stats(), stats()]), ...lines);
  return { seen: shown.join('\n'), exporter, lines };
}

async function echo(status: number): Promise<string> {
  const { url } = await serve(({ headers }, response) => {
    const all = JSON.stringify(headers);
    response.writeHead(status, `Bad ${headers['x-api-key']}`, {
      'content-type': 'text/html',
      location: `http://${USER}:${PASSWORD}@other.example/?key=${headers['x-api-key']}`,
      'retry-after': `${headers['x-api-key']}`,
      'www-authenticate': all,
    });
    response.end(all);
  });
  return url;
}

async function speaking(say: (socket: Socket) => void): Promise<string> {
  const server = createServer((socket) => void socket.on('error', () => {}).once('data', () => say(socket)));
  return listenInTest(server);
}

const TROUBLE: readonly (readonly [string, () => Promise<string>])[] = [
  ...[200, 307, 400, 401, 404, 413, 422, 429, 503].map(
    (status) => [`a status of ${status} that repeats the request`, () => echo(status)] as const,
  ),
  ['a connection that is reset', () => speaking((socket) => socket.resetAndDestroy())],
  ['missing', () => speaking(() => {})],
  ['invalid HTTP that repeats the key', () => speaking((socket) => socket.end(`${KEY}\r\n\r\n`))],
  ['cut off', () => speaking((socket) => socket.end(`HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n${KEY}`))],
  ['a refused connection', async () => 'http://127.0.0.1:9'],
];

describe('keys, header values and secrets in payloads', () => {
  test.each(TROUBLE)('are not visible if the response is %s [security 1]', async (_, endpointOf) => {
    const { seen, exporter, lines } = await seenOf({ endpoint: await endpointOf(), allowInsecure: true, log: 'debug' });
    expect(seen).not.toMatch(CANARY);
    expect(lines.length).toBeGreaterThan(0);
    expect(addsUp(exporter.stats())).toBe(true);
  });

  test.each([
    [
      'throws',
      (error: Error) => {
        throw error;
      },
    ],
    ['rejects', (error: Error) => Promise.reject(error)],
    ['rejects with several errors', (error: Error) => Promise.reject(new AggregateError([error], error.message))],
    ['rejects with a text', (error: Error) => Promise.reject(error.message)],
  ])('are not visible if a dispatcher %s with them in its message [security 1]', async (_, fail) => {
    const cause = new Error(`${HEADER} was refused`);
    const error = new Error(`x-api-key: ${KEY}, ${HEADER}: http://${USER}:${PASSWORD}@proxy.example:3128 is down`, {
      cause,
    });
    const dispatcher = { request: () => fail(error) } as unknown as Dispatcher;
    const { seen, lines } = await seenOf({ endpoint: 'http://127.0.0.1:9', dispatcher, log: 'debug' });
    expect(seen).not.toMatch(CANARY);
    expect(lines.join('\n')).toContain('delivery to http://127.0.0.1:9 failed');
  });

  test('are not visible after a success; the service receives the key and the headers, but no secret [security 1]', async () => {
    const server = await ingestServerInTest();
    const { seen } = await seenOf({ endpoint: server.url, log: 'debug' });
    expect(seen).not.toMatch(CANARY);
    const [request] = server.received;
    expect(request?.headers).toMatchObject({ 'x-api-key': KEY, 'x-team-token': HEADER });
    const parts = [...readJsonParts(request ?? { headers: {}, body: Buffer.of() }).values()];
    expect(parts).toMatchObject([
      { extra: { metadata: { apiKey: '[Redacted]' } } },
      { password: '[Redacted]' },
      { authorization: '[Redacted]' },
    ]);
  });

  test('are not visible in a receiver and its responses [security 1]', async () => {
    const lines = printed();
    const receiver = await start();
    const headers = { 'x-api-key': KEY, 'content-type': 'application/json', cookie: INPUT };
    const answers = [
      await call(`${receiver.url}/runs`, 'POST', '{}', headers),
      await call(`${receiver.url}/runs`, 'POST', '{"id', headers),
      await call(`${receiver.url}/runs/multipart`, 'POST', 'x', headers),
      await call(`${receiver.url}/nothing`, 'GET', undefined, headers),
    ];
    expect(answers.map(({ status }) => status)).toEqual([422, 400, 415, 404]);
    expect([looksOf(receiver), JSON.stringify(answers), ...lines].join('\n')).not.toMatch(CANARY);
  });
});
