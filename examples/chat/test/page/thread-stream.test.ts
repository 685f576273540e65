import { afterEach, expect, test, vi } from 'vitest';
import type { ProtocolEvent } from '../../page/protocol.ts';
import { backOffMs, ThreadStream } from '../../page/thread-stream.ts';

afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

test('the first attempt comes soon, later ones each later, and none after more than 10 s', () => {
  expect([0, 1, 2, 5, 6, 1_000].map((failures) => backOffMs(failures, 1))).toEqual([
    250, 500, 1_000, 8_000, 10_000, 10_000,
  ]);
  expect(backOffMs(0, 0)).toBe(125);
});

test('a state or a stream that nothing comes of for 20 s is asked for again', async () => {
  vi.useFakeTimers();
  vi.stubGlobal('addEventListener', () => undefined);
  const frame = 'data: {"method":"custom","seq":1,"params":{"namespace":[],"data":{}}}\n\n';
  const answers = [never, async () => new Response(frame)];
  vi.stubGlobal('fetch', (_url: string, { signal }: RequestInit) => (answers.shift() ?? never)(signal));
  const states = [never, async () => undefined, async () => undefined];
  const events: ProtocolEvent[] = [];
  const stream = new ThreadStream({
    threadId: 't',
    beforeConnect: async (signal) => void (await (states.shift() ?? never)(signal)),
    onEvents: (some) => events.push(...some),
    onConnection: () => undefined,
    onRefusal: () => undefined,
  });
  const over = stream.run();
  await vi.advanceTimersByTimeAsync(20_500);
  expect(answers).toHaveLength(1);
  await vi.advanceTimersByTimeAsync(20_500);
  expect(events).toHaveLength(1);
  stream.close();
  await over;
});

/** As a request that nobody answers. */
function never(signal: AbortSignal | null | undefined): Promise<never> {
  return new Promise((_resolve, reject) => signal?.addEventListener('abort', () => reject(signal.reason)));
}
