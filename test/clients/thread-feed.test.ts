import '../support/virtual-timers.ts';

import type { ServerResponse } from 'node:http';
import { describe, expect, it, onTestFinished } from 'vitest';
import { AgentThreads, type AgentThreadsOptions } from '#src/clients/agent-server/protocol/agent-threads.ts';
import type { ThreadEvents, ThreadEventsOptions } from '#src/clients/agent-server/protocol/thread-events.ts';
import { collectUntil } from '../support/garbage.ts';
import { virtualClock } from '../support/virtual-clock.ts';
import { reset, type Step, serveSteps, settled, startAlike, status } from './stepped-server.ts';

const KEY = 'lsv2_threads_key_1';
const HEAD = { 'content-type': 'text/event-stream' };
const HEARTBEAT = ': heartbeat\n\n';

/** Returns an event as text. A later timestamp makes it another event. */
const event = (seq: number, at = seq, data: unknown = { at: seq }): string => {
  const params = { namespace: [], timestamp: at, data };
  const json = JSON.stringify({ type: 'event', event_id: `e-${seq}`, seq, method: 'values', params });
  return `event: values\ndata: ${json}\nid: e-${seq}\n\n`;
};
const events = (...seqs: readonly number[]): string => seqs.map((seq) => event(seq)).join('');
const bare = (data: object): string => `data: ${JSON.stringify({ method: 'custom', params: { data } })}\n\n`;
const missed = bare({ name: 'missed_events', payload: { after: 2, before: 5 } });
const done = (name = 'completed', at = 99): string =>
  `data: ${JSON.stringify({ event_id: `e-${at}`, seq: at, method: 'lifecycle', params: { namespace: [], timestamp: at, data: { event: name, error: `said ${KEY}` } } })}\n\n`;

const holding =
  (text: string): Step =>
  (response) =>
    response.writeHead(200, HEAD).write(text);
const breaking =
  (text: string): Step =>
  (response) => {
    response.writeHead(200, HEAD);
    response.flushHeaders();
    response.write(text, () => setImmediate(() => response.destroy()));
  };
const ending =
  (text: string): Step =>
  (response) =>
    response.writeHead(200, HEAD).end(text);
/** Sends heartbeats without an end. */
const beating: Step = (response) => {
  response.writeHead(200, HEAD);
  const more = (): void => {
    if (!response.destroyed) response.write(HEARTBEAT, () => setImmediate(more));
  };
  more();
};

/** Returns a client of a server that handles each request by the next step. The last step repeats. */
async function script(steps: readonly Step[], options: Partial<AgentThreadsOptions> = {}) {
  const served = await serveSteps(steps);
  const threads = new AgentThreads({ url: served.url, apiKey: KEY, maxRetries: 0, ...options });
  onTestFinished(() => threads.close());
  /** The `since` and the last event id of each request. */
  const asked = () =>
    served.seen.map(
      ({ body, headers }) =>
        `${(JSON.parse(body) as { since?: number }).since ?? '-'} ${headers['last-event-id'] ?? '-'}`,
    );
  return { ...served, threads, asked };
}

interface Reading {
  readonly seen: string[];
  readonly thrown?: unknown;
}

/** Reads up to `max` events, or to the end. */
async function read(threads: AgentThreads, max: number, options?: ThreadEventsOptions): Promise<Reading> {
  const seen: string[] = [];
  const result = await settled(
    (async () => {
      for await (const one of await threads.events('t-1', options)) {
        seen.push(
          one.seq === undefined
            ? one.name
            : `${one.seq}${one.params.timestamp === one.seq ? '' : ` at ${one.params.timestamp}`}`,
        );
        if (seen.length === max) break;
      }
    })(),
  );
  return result.status === 'rejected' ? { seen, thrown: result.reason } : { seen };
}

const upTo = (count: number): string[] => Array.from({ length: count }, (_, at) => String(at + 1));

startAlike();

describe('a broken stream of a thread', () => {
  it.each([
    ['a reset', breaking(events(1, 2, 3))],
    ['a clean end', ending(events(1, 2, 3))],
    ['an end within an event', ending(events(1, 2, 3) + event(4).slice(0, 60))],
    ['an end before the blank line of an event', ending(events(1, 2, 3) + event(4).slice(0, -1))],
    ['silence', holding(events(1, 2, 3))],
    ['silence after heartbeats', holding(HEARTBEAT + events(1, 2, 3) + HEARTBEAT)],
  ])('continues after %s with the last event, which is returned once', async (_, step) => {
    const { threads, asked } = await script([step, holding(HEARTBEAT + events(3, 4, 5))]);

    expect(await read(threads, 5)).toEqual({ seen: upTo(5) });
    expect(asked()).toEqual(['- -', '2 e-2']);
  });

  it('reports the end of the stored events and each lost connection to `onStatus`', async () => {
    const live = ': live\n\n';
    const first = breaking(events(1, 2) + live + events(3));
    const { threads } = await script([first, status(503), holding(events(3, 4) + live + events(5))]);
    const reported: string[] = [];
    const onStatus = (text: string): void => {
      reported.push(text);
      throw new Error('an error of the function does not end the stream');
    };

    expect(await read(threads, 5, { onStatus })).toEqual({ seen: upTo(5) });
    expect(reported).toEqual(['live', 'reconnecting', 'live']);
  });

  it('returns each event once wherever it breaks, even within a character', async () => {
    const all = [1, 2, 3].map((seq) => Buffer.from(event(seq, seq, { text: 'Grüße 🌤' })));
    const whole = Buffer.concat(all);
    let cut = 0;
    let isFirst = true;
    const { threads, seen } = await script([
      (response) => {
        const { since = 0 } = JSON.parse(seen.at(-1)?.body ?? '') as { since?: number };
        response.writeHead(200, HEAD);
        if (isFirst) response.end(whole.subarray(0, cut));
        else response.write(Buffer.concat(all.slice(since)));
        isFirst = false;
      },
    ]);

    for (cut = 0; cut <= whole.length; cut += 5) {
      isFirst = true;
      expect(await read(threads, 3), `cut at ${cut}`).toEqual({ seen: upTo(3) });
    }
  });

  it('returns each event once if the server repeats events', async () => {
    const { threads } = await script([
      ending(events(1, 2, 3, 2, 3)),
      // The server ignores `since`, so its first event is not the last event.
      ending(events(1, 2, 3)),
      holding(events(1, 2, 3, 4, 4, 5)),
    ]);

    expect(await read(threads, 5)).toEqual({ seen: upTo(5) });
  });

  it('returns events in the order in which they arrive', async () => {
    const { threads } = await script([ending(events(1, 3, 2)), holding(events(3, 5, 4))]);

    expect((await read(threads, 5)).seen).toEqual(['1', '3', '2', '5', '4']);
  });

  it('requests all events if the server does not start with the last event', async () => {
    const { threads, asked } = await script([
      ending(events(1, 2, 3)),
      holding(events(5)),
      holding(events(1, 2, 3, 4, 5)),
    ]);

    expect(await read(threads, 5)).toEqual({ seen: upTo(5) });
    expect(asked()).toEqual(['- -', '2 e-2', '- -']);
  });

  it('requests all events if the server counts from 1 again, and misses no new event', async () => {
    const anew = [1, 2, 3, 4].map((seq) => event(seq, 100 + seq)).join('');
    const { threads, asked } = await script([
      ending(events(1, 2, 3)),
      holding(event(3, 103)),
      ending(anew),
      holding(event(4, 104) + event(5, 105)),
    ]);

    const { seen } = await read(threads, 8);
    expect(seen).toEqual(['1', '2', '3', '1 at 101', '2 at 102', '3 at 103', '4 at 104', '5 at 105']);
    expect(asked()).toEqual(['- -', '2 e-2', '- -', '3 e-3']);
  });

  it.each([
    ['sends nothing', holding(''), []],
    ['sends only heartbeats', beating, []],
    ['sends an event without `seq`', holding(bare({ payload: 1 })), ['custom']],
  ])('requests all events if the server %s', async (_, step, between) => {
    const { threads, asked } = await script([ending(events(1, 2)), step, holding(event(1, 11))]);

    const { seen } = await read(threads, 3 + between.length);
    expect(seen).toEqual(['1', '2', ...between, '1 at 11']);
    expect(asked()).toEqual(['- -', '1 e-1', '- -']);
    // The idle timeout is much longer.
    expect(virtualClock.nowMs).toBeLessThan(120_000);
  });

  it('requests all events again if that connection breaks too', async () => {
    const { threads, asked } = await script([
      ending(events(1, 2)),
      holding(events(9)),
      status(503),
      ending(''),
      holding(events(1, 2, 3)),
    ]);

    expect(await read(threads, 3)).toEqual({ seen: upTo(3) });
    expect(asked()).toEqual(['- -', '1 e-1', '- -', '- -', '- -']);
  });

  it('continues after a report of missed events', async () => {
    const { threads, asked } = await script([ending(events(1, 2)), holding(missed + events(5, 6))]);

    expect(await read(threads, 5)).toEqual({ seen: ['1', '2', 'custom', '5', '6'] });
    expect(asked()).toEqual(['- -', '1 e-1']);
  });

  it('repeats its first request if no event arrived', async () => {
    const { threads, asked } = await script([ending(HEARTBEAT), reset, holding(events(8))]);

    expect(await read(threads, 1, { since: 7, lastEventId: 'e-7' })).toEqual({ seen: ['8'] });
    expect(asked()).toEqual(['7 e-7', '7 e-7', '7 e-7']);
  });

  it('drops events that were not requested', async () => {
    const { threads, asked } = await script([ending(events(6, 7, 8)), holding(events(9)), holding(events(1, 7, 8, 9))]);

    expect(await read(threads, 2, { since: 7 })).toEqual({ seen: ['8', '9'] });
    expect(asked()).toEqual(['7 -', '7 -', '- -']);
  });

  it('continues by ids if events have no `seq`', async () => {
    const named = (id: string): string =>
      `id: ${id}\ndata: ${JSON.stringify({ event_id: id, method: 'custom', params: { data: { payload: id } } })}\n\n`;
    const { threads, asked } = await script([
      ending(named('a') + named('b')),
      holding(named('a') + named('b') + named('c')),
    ]);

    expect((await read(threads, 3)).seen).toHaveLength(3);
    expect(asked()).toEqual(['- -', '- b']);
  });

  it.each([
    [
      404,
      status(404, {}, '{"error":"not_found","message":"Thread not found"}'),
      'the stream cannot continue: .*404 Thread not found',
    ],
    [401, status(401), 'the stream cannot continue: .*401 not now'],
    [204, (response: ServerResponse) => void response.writeHead(204).end(), 'is not a stream of events'],
    [200, status(200), 'is not a stream of events'],
  ])('ends after a response with %d', async (_, step, outlook) => {
    const { threads, seen } = await script([ending(events(1, 2)), step]);

    const { thrown } = await read(threads, 9);
    expect(thrown).toMatchObject({
      code: 'RUNSPAN_STREAM_BROKEN',
      threadId: 't-1',
      lastEvent: { name: 'values', id: 'e-2' },
    });
    expect(String(thrown)).toMatch(
      new RegExp(`after the event "values" \\(id e-2\\): the connection was closed; .*${outlook}`),
    );
    expect(String(thrown)).not.toContain(KEY);
    expect(seen).toHaveLength(2);
  });

  it.each([
    ['5xx', status(503)],
    ['429', status(429)],
    ['408', status(408)],
    ['a reset', reset],
    ['an end without an event', ending('')],
    ['an end after repeated events', ending(events(2))],
    ['an end after two heartbeats', ending(HEARTBEAT + events(2) + HEARTBEAT)],
  ])('ends after five attempts with %s', async (_, step) => {
    const { threads, seen } = await script([ending(events(1, 2)), step]);

    const { thrown, seen: given } = await read(threads, 9);
    expect(given).toEqual(upTo(2));
    expect(String(thrown)).toMatch(/5 attempts to reconnect failed$/);
    expect(seen).toHaveLength(6);
  });

  it('makes five new attempts after each event', async () => {
    const begins = [events(1), events(1, 2), events(2, 3)];
    const steps = begins.flatMap((text) => [ending(text), reset, reset, reset, reset]);
    const { threads } = await script([...steps, holding(events(3, 4))]);

    expect(await read(threads, 4)).toEqual({ seen: upTo(4) });
  });

  it('makes five new attempts after three heartbeats', async () => {
    const quiet = ending(events(1) + HEARTBEAT + HEARTBEAT + HEARTBEAT);
    const { threads } = await script([...Array.from({ length: 12 }, () => quiet), holding(events(1, 2))]);

    expect(await read(threads, 2)).toEqual({ seen: upTo(2) });
  });
});

describe('a stream of a thread', () => {
  it.each([
    ['invalid bytes', '\u0000\u0001\uFFFD\n\n', []],
    ['a broken event', 'data: {"seq":\n\n', ['message']],
    ['a list', 'data: []\n\n', ['message']],
    ['an event of a later version', 'data: {"method":"files","params":{"data":1}}\n\n', ['files']],
  ])('continues after %s', async (_, text, between) => {
    const { threads } = await script([holding(event(1) + text + event(2))]);

    expect((await read(threads, 2 + between.length)).seen).toEqual(['1', ...between, '2']);
  });

  it('closes its connection when the loop is left, when it is closed, and when it is garbage-collected', async () => {
    const { threads, open } = await script([holding(events(1, 2))]);
    const until = async (count: number): Promise<void> => {
      while (open.size !== count) await new Promise(setImmediate);
    };
    for await (const _ of await threads.events('t-1')) break;
    await until(0);

    const closed = await threads.events('t-1');
    const waiting = closed[Symbol.asyncIterator]();
    await waiting.next();
    await waiting.next();
    const last = waiting.next();
    await closed.close();
    expect(await last).toEqual({ done: true, value: undefined });
    await until(0);

    const left = (await threads.events('t-1'))[Symbol.asyncIterator]();
    await left.next();
    await left.next();
    const pending = left.next();
    await left.return?.();
    expect(await pending).toEqual({ done: true, value: undefined });
    await until(0);

    await threads.events('t-1');
    await collectUntil(() => open.size === 0);
  });

  it('can be read once', async () => {
    const { threads } = await script([holding(events(1))]);
    const stream: ThreadEvents = await threads.events('t-1');
    for await (const _ of stream) break;

    expect(() => stream[Symbol.asyncIterator]()).toThrow(
      'These events are already being read. Events can be read only once.',
    );
  });
});

describe('the events of a run', () => {
  const RUN = { run: { run_id: 'r-1', applied_through_seq: 0 } };

  it('end with the run and close the connection', async () => {
    const { threads, open, seen } = await script([holding(events(1) + done('completed') + event(100))]);

    expect((await read(threads, 9, RUN)).seen).toEqual(['1', '99']);
    while (open.size > 0) await new Promise(setImmediate);
    expect(seen).toHaveLength(1);
  });

  it('end with the run even if its id is not text', async () => {
    const { threads } = await script([holding(events(1) + done().replace('"event":', '"run_id":null,"event":'))]);

    expect((await read(threads, 9, RUN)).seen).toEqual(['1', '99']);
  });

  it('end with the error of the run, without a key', async () => {
    const { threads } = await script([holding(done('failed'))]);

    const { seen, thrown } = await read(threads, 9, RUN);
    expect(seen).toEqual(['99']);
    expect(thrown).toMatchObject({
      code: 'RUNSPAN_RUN_FAILED',
      detail: 'said [secret]',
      runId: 'r-1',
      threadId: 't-1',
    });
  });

  it('continue after a break to the end of the run', async () => {
    const { threads } = await script([breaking(events(1, 2)), holding(events(2, 3) + done('interrupted'))]);

    expect(await read(threads, 9, RUN)).toEqual({ seen: ['1', '2', '3', '99'] });
  });

  it('end with a StreamError if the server has lost them', async () => {
    const { threads, asked } = await script([ending(events(1)), beating]);

    const { seen, thrown } = await read(threads, 9, RUN);
    expect(seen).toEqual(['1']);
    expect(thrown).toMatchObject({ code: 'RUNSPAN_STREAM_BROKEN', runId: 'r-1' });
    expect(String(thrown)).toContain('the server no longer has the events');
    expect(asked()).toEqual(['- -', '0 -', '- -']);
  });

  it('end with a StreamError if the server stays silent', async () => {
    const { threads, seen } = await script([holding(events(1)), holding('')]);

    const { thrown } = await read(threads, 9, { ...RUN, idleTimeoutMs: 10_000 });
    expect(thrown).toMatchObject({ code: 'RUNSPAN_STREAM_BROKEN', runId: 'r-1' });
    expect(seen).toHaveLength(6);
  });
});
