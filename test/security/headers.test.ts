import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import fc from 'fast-check';
import { describe, expect, onTestFinished, test } from 'vitest';
import { createExporter, startRun } from '../../src/index.ts';
import { environmentOf } from '../support/environment.ts';
import { told } from '../support/told.ts';

const KEY = 'sk-the-only-key';

/** Header lines as they came, names as they were written. */
async function lineServer(): Promise<{ url: string; lines: [name: string, value: string][] }> {
  const lines: [string, string][] = [];
  const server = createServer((request, response) => {
    request.resume().on('end', () => response.writeHead(request.method === 'GET' ? 404 : 202).end('{}'));
    if (request.method === 'GET') return;
    lines.length = 0;
    const { rawHeaders } = request;
    for (let at = 0; at < rawHeaders.length; at += 2) lines.push([rawHeaders[at] ?? '', rawHeaders[at + 1] ?? '']);
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, lines };
}

/** Sends one run with these headers among the options. */
async function send(url: string, headers: Record<string, string>): Promise<void> {
  const exporter = createExporter({ endpoint: url, apiKey: KEY, workspaceId: 'w-1', headers });
  startRun({ name: 'a', exporter }).end();
  expect(await exporter.close()).toEqual({ ok: true, pending: 0 });
}

/** What requests have of their own, in lower case. */
const OWN = {
  host: /^127\.0\.0\.1:\d+$/,
  connection: /^keep-alive$/,
  'user-agent': /^runspan$/,
  'x-tenant-id': /^w-1$/,
  'x-api-key': /^sk-the-only-key$/,
  'content-type': /^multipart\/form-data; boundary=runspan-[\da-f]{32}$/,
  'content-length': /^\d+$/,
};

const spellings = (name: string): fc.Arbitrary<string> =>
  fc
    .array(fc.boolean(), { minLength: name.length, maxLength: name.length })
    .map((upper) => [...name].map((letter, at) => (upper[at] === true ? letter.toUpperCase() : letter)).join(''));

const OF_HTTP = ['transfer-encoding', 'content-encoding', 'expect', 'upgrade', 'te'];
const ownName = fc.constantFrom(...Object.keys(OWN), ...OF_HTTP);
const wild = fc.string({ unit: fc.constantFrom(...'aX-: \r\n\0\t"é\u{1f511}') });
const name = fc.oneof(ownName.chain(spellings), fc.constantFrom('x-team', '__proto__', 'constructor'), wild);
const value = fc.oneof(fc.constantFrom('1', 'evil', '1\r\nx-api-key: evil', 'a\nb', 'chunked', ''), wild);

const OPTIONS: Readonly<Record<string, string>> = { 'X-API-KEY': 'apiKey', 'x-Tenant-Id': 'workspaceId' };

describe('headers', () => {
  test('of the application neither take the place of ours, in whatever case, nor make further ones [security 2]', async () => {
    environmentOf();
    told();
    const { url, lines } = await lineServer();
    await fc.assert(
      fc.asyncProperty(fc.array(fc.tuple(name, value), { maxLength: 6 }), async (given) => {
        await send(url, Object.fromEntries(given));
        const seen = lines.map(([key]) => key.toLowerCase());
        expect(new Set(seen).size).toBe(seen.length);
        for (const [own, form] of Object.entries(OWN)) {
          expect(lines.find(([key]) => key.toLowerCase() === own)?.[1]).toMatch(form);
        }
        // Everything else was given so, in one piece.
        for (const [key, text] of lines) {
          if (key.toLowerCase() in OWN) continue;
          expect(given.map(([each, its]) => `${each.toLowerCase()}: ${its.trim()}`)).toContain(
            `${key.toLowerCase()}: ${text}`,
          );
        }
      }),
      {
        numRuns: 150,
        examples: [[[['X-API-Key', 'evil']]], [[['x-team', 'a\r\nx-api-key: evil']]], [[['Host', 'evil']]]],
      },
    );
  });

  test.each(['Host', 'CONTENT-LENGTH', 'Transfer-Encoding', 'bad name', 'a:b', '', ...Object.keys(OPTIONS)])(
    'named %j are left out with one line, which does not repeat the value [security 2]',
    async (given) => {
      environmentOf();
      const { url, lines } = await lineServer();
      const diagnostics = told();
      await send(url, { [given]: 'canary-value' });
      expect(diagnostics.filter((line) => !line.startsWith('debug: '))).toEqual([
        given in OPTIONS
          ? `warn: configuration: header \`${given.toLowerCase()}\` is left out for ${url}; use \`${OPTIONS[given]}\`.`
          : `warn: configuration: header \`${given.toLowerCase()}\` cannot be set; left out.`,
      ]);
      expect(JSON.stringify(lines)).not.toContain('canary');
    },
  );

  test.each([
    ['a line break', 'a\r\nb'],
    ['a NUL', 'a\0'],
    ['letters beyond ASCII', 'schlüssel'],
    ['no text', 5 as unknown as string],
  ])('with %s in their value are left out with one line, which does not repeat it [security 2]', async (_, bad) => {
    environmentOf();
    const { url, lines } = await lineServer();
    const diagnostics = told();
    await send(url, { 'x-team': bad });
    expect(diagnostics.filter((line) => !line.startsWith('debug: '))).toEqual([
      'warn: configuration: header `x-team` cannot be set; left out.',
    ]);
    expect(lines.map(([key]) => key.toLowerCase())).not.toContain('x-team');
  });

  test.each([
    ['!', true],
    ['~'.repeat(8192), true],
    ['k'.repeat(8193), false],
    ['a b', false],
    ['a\tb', false],
    ['a\nb', false],
    ['a\u007fb', false],
    ['a\u0080b', false],
  ])('a key %j is taken: %s [security 2]', async (apiKey, isTaken) => {
    environmentOf();
    told();
    const { url, lines } = await lineServer();
    const exporter = createExporter({ endpoint: url, apiKey });
    startRun({ name: 'a', exporter }).end();
    await exporter.close();
    expect(lines.filter(([key]) => key === 'x-api-key').map(([, text]) => text)).toEqual(isTaken ? [apiKey] : []);
  });
});
