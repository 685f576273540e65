import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { createExporter, startRun } from '#src/index.ts';
import { serve } from '../http/server.ts';
import { environmentOf } from '../support/environment.ts';
import { logLines } from '../support/log-lines.ts';

const KEY = 'sk-the-only-key';

/** Records header lines with their names as written. */
async function lineServer(): Promise<{ url: string; lines: [name: string, value: string][] }> {
  const lines: [string, string][] = [];
  const { url } = await serve(({ method, rawHeaders }, response) => {
    response.writeHead(method === 'GET' ? 404 : 202).end('{}');
    if (method === 'GET') return;
    lines.length = 0;
    for (let at = 0; at < rawHeaders.length; at += 2) lines.push([rawHeaders[at] ?? '', rawHeaders[at + 1] ?? '']);
  });
  return { url, lines };
}

async function send(url: string, headers: Record<string, string>): Promise<void> {
  const exporter = createExporter({ endpoint: url, apiKey: KEY, workspaceId: 'w-1', headers });
  startRun({ name: 'a', exporter }).end();
  expect(await exporter.close()).toEqual({ ok: true, pending: 0 });
}

/** The headers that the library sets, in lower case. */
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

describe('headers', () => {
  test('of the application do not replace headers of the library in any case, and do not inject headers [security 2]', async () => {
    environmentOf();
    logLines();
    const { url, lines } = await lineServer();
    await fc.assert(
      fc.asyncProperty(fc.array(fc.tuple(name, value), { maxLength: 6 }), async (given) => {
        await send(url, Object.fromEntries(given));
        const seen = lines.map(([key]) => key.toLowerCase());
        expect(new Set(seen).size).toBe(seen.length);
        for (const [own, form] of Object.entries(OWN)) {
          expect(lines.find(([key]) => key.toLowerCase() === own)?.[1]).toMatch(form);
        }
        // All other headers are those of the application, each in one line.
        for (const [key, text] of lines) {
          if (key.toLowerCase() in OWN) continue;
          expect(given.map(([each, its]) => `${each.toLowerCase()}: ${its.trim()}`)).toContain(
            `${key.toLowerCase()}: ${text}`,
          );
        }
      }),
      { examples: [[[['X-API-Key', 'evil']]], [[['x-team', 'a\r\nx-api-key: evil']]], [[['Host', 'evil']]]] },
    );
  });

  test.each<[string, unknown, string?]>([
    ...['Host', 'CONTENT-LENGTH', 'Transfer-Encoding', 'bad name', 'a:b', ''].map((name): [string, string] => [
      name,
      'canary',
    ]),
    ['X-API-KEY', 'canary', 'apiKey'],
    ['x-Tenant-Id', 'canary', 'workspaceId'],
    ['x-team', 'canary\r\nb'],
    ['x-team', 'canary\0'],
    ['x-team', 'canarü'],
    ['x-team', 5],
  ])('%j: %j are left out with one line that does not repeat the value [security 2]', async (name, value, option) => {
    environmentOf();
    const { url, lines } = await lineServer();
    const diagnostics = logLines();
    await send(url, { [name]: value as string });
    const reason = option === undefined ? 'cannot be set and is ignored.' : `is not sent to ${url}; use \`${option}\`.`;
    expect(diagnostics.filter((line) => !line.startsWith('debug: '))).toEqual([
      `warn: configuration: header \`${name.toLowerCase()}\` ${reason}`,
    ]);
    expect(JSON.stringify(lines)).not.toMatch(/canar|x-team/i);
  });
});
