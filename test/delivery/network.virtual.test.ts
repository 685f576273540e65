// One fault at a request or at `GET /info`: every run arrives in an acknowledged request, and no patch before its post.
import '../support/virtual-timers.ts';

import type { Socket } from 'node:net';
import { expect, it } from 'vitest';
import { addsUp } from '../support/adds-up.ts';
import type { Arrival } from '../support/arrivals.ts';
import { readByBusboy } from '../support/busboy-reader.ts';
import { sample } from '../support/campaign.ts';
import { advance, delivery, onFlush } from '../support/delivery.ts';
import { readParts } from '../support/multipart-reader.ts';
import { traffic, type Verdict } from '../support/scripted-service.ts';

const HEAD = 'HTTP/1.1 202 Accepted\r\ncontent-type: application/json\r\n';

/** Writes these bytes and ends the connection, or keeps it open without a further byte. */
const cut = (bytes: string) => (socket: Socket) => socket.end(bytes);
const stuck = (bytes: string) => (socket: Socket) => socket.write(bytes);

function drip(socket: Socket, text: string): void {
  if (text === '') return void socket.end();
  // Virtual time waits for the next byte.
  traffic.count++;
  socket.write(text.slice(0, 1), () => setImmediate(() => drip(socket, text.slice(1))));
}

/** Sends a byte every 5 ms until the client closes the connection. */
function dripForever(socket: Socket): void {
  socket.write(`${HEAD}content-length: 60000\r\n\r\n`);
  const timer = setInterval(() => socket.write(' '), 5);
  socket.on('close', () => clearInterval(timer));
}

/** Faults that the client takes for a response with status 202. */
const accepted: readonly (readonly [name: string, verdict: Verdict])[] = [
  ['headers without a body', stuck(`${HEAD}content-length: 20\r\n\r\n`)],
  ['half of a body, then the end', cut(`${HEAD}content-length: 20\r\n\r\n{"half":`)],
  ['half of a body, then silence', stuck(`${HEAD}content-length: 20\r\n\r\n{"half":`)],
  [
    'half of a body, then a reset',
    (socket) => socket.write(`${HEAD}content-length: 9\r\n\r\n{`, () => socket.resetAndDestroy()),
  ],
  ['truncated chunks, then the end', cut(`${HEAD}transfer-encoding: chunked\r\n\r\n5\r\n{"a`)],
  ['truncated chunks, then silence', stuck(`${HEAD}transfer-encoding: chunked\r\n\r\n5\r\n{"a`)],
  ['a length that is too small', cut(`${HEAD}content-length: 2\r\n\r\n{"more":"than that"}`)],
  ['a body byte by byte', (socket) => drip(socket, `${HEAD}content-length: 2\r\n\r\n{}`)],
  ['a body without end', dripForever],
];

const failed: readonly (readonly [name: string, verdict: Verdict])[] = [
  ['a reset', 'reset'],
  ['the end of the connection', cut('')],
  ['silence', 'hold'],
  ['half of a status line, then the end', cut('HTTP/1.1 2')],
  ['half of a status line, then silence', stuck('HTTP/1.1 2')],
  ['half of the headers, then the end', cut(HEAD.slice(0, -10))],
  ['half of the headers, then silence', stuck(HEAD.slice(0, -10))],
  ['two lengths', cut(`${HEAD}content-length: 2\r\ncontent-length: 3\r\n\r\n{}`)],
  ['another protocol', cut('SSH-2.0-OpenSSH_9.6\r\n')],
  ['status 099', cut('HTTP/1.1 099 Odd\r\ncontent-length: 0\r\n\r\n')],
  ['a malformed header', cut('HTTP/1.1 202 Accepted\r\nno header at all\r\n\r\n{}')],
  ['headers beyond every limit', cut(`${HEAD}${`x-more: ${'x'.repeat(1_000)}\r\n`.repeat(100)}\r\n`)],
  ['status 408', 408],
  ['status 413', 413],
  ['status 429 with Retry-After', { status: 429, headers: { 'retry-after': '1' } }],
  ['status 500', 500],
  ['status 503 with Retry-After', { status: 503, headers: { 'retry-after': '1' } }],
];

/** Records runs of which two are posted and patched apart, with the fault at one request or at `GET /info`. */
async function recordOver(place: number | 'info', verdict: Verdict, isAccepted: boolean) {
  const seen: Arrival[] = [];
  const early: string[] = [];
  const made = await delivery({
    limits: { ...onFlush, batchRuns: 3, requestTimeoutMs: 5_000 },
    info: () => (place === 'info' ? verdict : 404),
    reply: ({ arrivals }, index) => {
      if (index === place && !isAccepted) return verdict;
      for (const { op, id, name } of arrivals) {
        if (op === 'patch' && !seen.some((one) => one.id === id)) early.push(name);
      }
      seen.push(...arrivals);
      return index === place ? verdict : 202;
    },
  });
  const { start, whole, flush, stats, service } = made;
  const long = [start('long 1', { inputs: { n: 1 } }), start('long 2', { inputs: { n: 2 } })];
  await flush();
  for (const run of long) run.end({ ok: true });
  for (let n = 3; n < 8; n++) whole(`whole ${n}`, { inputs: { n } });
  expect(await flush()).toEqual({ ok: true, pending: 0 });
  await advance(2_000);

  expect(early).toEqual([]);
  expect(stats()).toMatchObject({ created: 7, sent: 7, dropped: 0 });
  expect(addsUp(stats())).toBe(true);
  expect(service.requests.length).toBeGreaterThan(2);
  const inputs = seen.flatMap(({ op, fields }) => (op === 'post' ? [fields.inputs?.n] : []));
  expect(new Set(inputs)).toEqual(new Set([1, 2, 3, 4, 5, 6, 7]));
  expect(new Set(seen.flatMap(({ id, isEnded }) => (isEnded ? [id] : []))).size).toBe(7);
  return made;
}

const PLACES = [0, 1, 2, 'info'] as const;

/** Each fault at each place. */
const placed = (faults: typeof failed) =>
  faults.flatMap(([name, verdict]) => PLACES.map((place) => [name, place, verdict] as const));

it.each(sample(placed(failed)))('%s at request %s loses no run', async (_, place, verdict) => {
  await recordOver(place, verdict, false);
});

it.each(sample(placed(accepted)))('%s at request %s counts as accepted', async (_, place, verdict) => {
  const { service } = await recordOver(place, verdict, true);
  expect(new Set(service.batches.map(String)).size).toBe(service.batches.length);
});

it.each([1, 200, 5_000, 300_000])('a connection that is reset after %i bytes of a body loses no run', async (bytes) => {
  const { whole, flush, service, stats } = await delivery({ limits: onFlush });
  service.cut = { bytes, times: 1 };
  for (let n = 0; n < 2; n++) whole('r', { inputs: { text: 'x'.repeat(400_000) } });
  expect(await flush()).toEqual({ ok: true, pending: 0 });

  expect(service.cut.times).toBe(0);
  expect(stats()).toMatchObject({ sent: 2, dropped: 0 });
  const [request] = service.requests;
  const read = await readByBusboy(request ?? { headers: {}, body: Buffer.alloc(0) });
  expect(read.map(({ body }) => `${body}`)).toEqual(request && readParts(request).map(({ body }) => `${body}`));
});
