// Incoming requests whose client leaves, in virtual time.
import '../support/virtual-timers.ts';

import { createServer, get } from 'node:http';
import { Readable } from 'node:stream';
import { expect, test } from 'vitest';
import { traceable } from '#src/index.ts';
import { record } from '../instrument/recorder.ts';
import { gate } from '../support/gate.ts';
import { listenInTest } from '../support/listen-in-test.ts';
import { turns } from '../support/virtual-time.ts';
import { virtualClock } from '../support/virtual-timers.ts';

process.env.RUNSPAN_INSTRUMENTATIONS = 'http';
await import('#src/register.ts');

const endless = () => new ReadableStream({ pull: (source) => source.enqueue('la ') }, { highWaterMark: 0 });
const respond = (name: string, body = endless()) =>
  traceable(() => new Response(body), { name, stream: (response) => response.body })().body as ReadableStream;

/** Serves a request whose client leaves. Returns the end reason of each run. */
async function leave(handler: (hasLeft: Promise<unknown>) => unknown) {
  const recorder = record();
  const [isAsked, hasLeft] = [gate(), gate()];
  const listener: Parameters<typeof createServer>[1] = (_, response) => {
    response.on('close', () => setImmediate(() => hasLeft.open()));
    void handler(hasLeft);
    isAsked.open();
  };
  const sent = get(await listenInTest(createServer(listener))).on('error', () => {});
  await isAsked;
  sent.destroy();
  await hasLeft;
  await turns();
  return () => recorder.runs.map(({ end_time, extra }) => end_time && (extra?.runspan_end_reason ?? 'ended'));
}

test('streams that nobody reads are cancelled a minute after the client has left, and can still be read', async () => {
  const streams: ReadableStream[] = [];
  const ends = await leave(async (hasLeft) => {
    streams.push(respond('before'));
    await hasLeft;
    streams.push(respond('after'));
  });
  await virtualClock.advance(59_999);
  expect(ends()).toEqual(['cancelled', undefined, undefined]);
  await virtualClock.advance(1);
  expect(ends()).toEqual(['cancelled', 'cancelled', undefined]);
  await virtualClock.advance(60_000);
  expect(ends()).toEqual(['cancelled', 'cancelled', 'cancelled']);
  for (const stream of streams) expect((await stream.getReader().read()).value).toBe('la ');
});

test('a stream that background work reads goes on: with pauses, while it waits, and if Node reads it', async () => {
  const [answered, streams] = [gate(), [] as ReadableStream[]];
  const waiting = new ReadableStream({ pull: () => answered }, { highWaterMark: 0 });
  const ends = await leave(() => streams.push(respond('paused'), respond('waits', waiting), respond('of Node')));
  const [paused, waits] = streams.map((stream, at) =>
    at < 2 ? stream.getReader() : Readable.fromWeb(stream as never),
  );
  void (waits as ReadableStreamDefaultReader).read();
  for (let read = 0; read < 5; read++) {
    await (paused as ReadableStreamDefaultReader).read();
    await virtualClock.advance(59_000);
  }
  expect(ends()).toEqual(['cancelled', undefined, undefined, undefined]);
});
