// Incoming requests whose client leaves, in virtual time.
import '../support/virtual-timers.ts';

import { createServer, get } from 'node:http';
import { Readable } from 'node:stream';
import { expect, onTestFinished, test } from 'vitest';
import { traceable } from '#src/index.ts';
import { recordRuns } from '#src/testing.ts';
import { gate } from '../support/gate.ts';
import { listenInTest } from '../support/listen-in-test.ts';
import { turns, until } from '../support/virtual-time.ts';
import { virtualClock } from '../support/virtual-timers.ts';

process.env.RUNSPAN_INSTRUMENTATIONS = 'http';
await import('#src/register.ts');

const endless = () => new ReadableStream({ pull: (source) => source.enqueue('la ') }, { highWaterMark: 0 });
const sing = traceable((body: ReadableStream = endless()) => new Response(body), {
  name: 'sing',
  stream: ({ body }) => body,
});

/** Serves a request whose client leaves while the handler waits. Returns when its run has ended. */
async function leave(handler: (hasLeft: Promise<unknown>) => unknown) {
  const recorder = recordRuns();
  onTestFinished(() => recorder.stop());
  const [isAsked, hasLeft] = [gate(), gate()];
  const url = await listenInTest(
    createServer((_, response) => {
      response.on('close', () => setImmediate(() => hasLeft.open()));
      void handler(hasLeft);
      isAsked.open();
    }),
  );
  const sent = get(url).on('error', () => {});
  await isAsked;
  sent.destroy();
  await hasLeft;
  await turns();
  const ends = () =>
    recorder.runs.map(({ name, end_time, extra }) => [name, end_time && (extra?.metadata?.end_reason ?? 'ended')]);
  return { recorder, ends };
}

const LEFT = ['GET /', 'cancelled'];

test('a stream that nobody reads is cancelled a minute after the client has left, and can still be read', async () => {
  let response = new Response();
  const { ends } = await leave(() => {
    response = sing();
  });
  await virtualClock.advance(59_999);
  expect(ends()).toEqual([LEFT, ['sing', undefined]]);
  await virtualClock.advance(1);
  expect(ends()).toEqual([LEFT, ['sing', 'cancelled']]);
  expect(await response.body?.getReader().read()).toEqual({ done: false, value: 'la ' });
});

test('a stream that the handler creates after the client has left is cancelled, too', async () => {
  const isCreated = gate<Response>();
  const first = traceable(() => 1, { name: 'first' });
  const { ends } = await leave(async (hasLeft) => {
    first();
    await hasLeft;
    isCreated.open(sing());
  });
  const response = await isCreated;
  await turns();
  await virtualClock.advance(120_000);
  expect(ends()).toEqual([LEFT, ['first', 'ended'], ['sing', 'cancelled']]);
  expect(response.bodyUsed).toBe(false);
});

test('a stream that background work reads goes on, with pauses and with a read that waits', async () => {
  const waiting = gate();
  const chunks = [async () => 'one ', async () => 'two ', () => waiting.then(() => 'three'), async () => undefined];
  const body = new ReadableStream({
    async pull(source) {
      const chunk = await chunks.shift()?.();
      if (chunk === undefined) source.close();
      else source.enqueue(new TextEncoder().encode(chunk));
    },
  });
  let response = new Response();
  const { recorder, ends } = await leave(() => {
    response = sing(body);
  });
  const reader = (response.body as ReadableStream).getReader();
  for (let read = 0; read < 2; read++) {
    await reader.read();
    await virtualClock.advance(59_000);
  }
  const third = reader.read();
  await virtualClock.advance(600_000);
  waiting.open();
  await third;
  await reader.read();
  expect(ends()).toEqual([LEFT, ['sing', 'ended']]);
  expect(recorder.run('sing').outputs?.outputs).toHaveLength(3);
});

test('a stream that Node reads internally goes on', async () => {
  let response = new Response();
  const { recorder } = await leave(() => {
    response = sing();
  });
  const readable = Readable.fromWeb(response.body as Parameters<typeof Readable.fromWeb>[0]);
  await virtualClock.advance(600_000);
  expect(recorder.run('sing').end_time).toBeUndefined();
  readable.destroy();
  await until(() => recorder.run('sing').end_time !== undefined);
});
