import type { ServerResponse } from 'node:http';
import { describe, expect, it } from 'vitest';
import { AgentServer } from '#src/clients/agent-server/agent-server.ts';
import type { AgentEvent } from '#src/clients/agent-server/streams/agent-event.ts';
import type { RunStream } from '#src/clients/agent-server/streams/run-stream.ts';
import { unhandledRejections } from '../base/rejections.ts';
import { serve } from '../http/server.ts';
import { gate } from '../support/gate.ts';
import { readAll } from '../support/read-all.ts';

const RUN = { assistant_id: 'agent' };
const METADATA = 'event: metadata\ndata: {"run_id":"r-1"}\n\n';
const FEEDBACK = 'event: feedback\ndata: {"liked":"https://f.example/1"}\n\n';
const ERROR = 'event: error\ndata: {"error":"ValueError","message":"no"}\n\n';
const AFTER = 'after the event "metadata" of run r-1';
const value = (count: number, padding = ''): string =>
  `event: values\ndata: {"count":${count},"padding":"${padding}"}\n\n`;

type Answer = (response: ServerResponse) => void;

async function streamOf(answer: string | Answer, headers: Record<string, string> = {}) {
  const { url } = await serve((_, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream', ...headers });
    if (typeof answer === 'string') response.end(answer);
    else {
      response.flushHeaders();
      answer(response);
    }
  });
  const server = new AgentServer({ url });
  return { url, stream: await server.runs.stream<{ count: number }>('t-1', RUN) };
}

async function failing(stream: RunStream<{ count: number }>) {
  const events: AgentEvent<{ count: number }>[] = [];
  try {
    for await (const event of stream) events.push(event);
  } catch (error) {
    return { events, error };
  }
  throw new Error('the stream ended well');
}

describe('RunStream', () => {
  it('returns events with their type, namespace, name and id', async () => {
    const { stream } = await streamOf(
      `${METADATA}id: 7\nevent: updates|a:1|b:2\ndata: {"node":null}\n\nevent: messages/partial\ndata: []\n\nevent: end\ndata:\n\n`,
    );

    expect(await readAll(stream)).toEqual([
      { event: 'metadata', name: 'metadata', namespace: [], id: undefined, data: { run_id: 'r-1' } },
      { event: 'updates', name: 'updates|a:1|b:2', namespace: ['a:1', 'b:2'], id: '7', data: { node: null } },
      { event: 'messages/partial', name: 'messages/partial', namespace: [], id: '7', data: [] },
      { event: 'end', name: 'end', namespace: [], id: '7', data: '' },
    ]);
  });

  it('returns unknown events and events that are not JSON, and continues', async () => {
    const { stream } = await streamOf(
      `event: later|x\ndata: {"a":1}\n\nevent: note\ndata: plain text\n\nevent: values\ndata: {"broken\n\n${value(1)}data: 5\n\n`,
    );

    expect(await readAll(stream)).toMatchObject([
      { event: 'other', name: 'later|x', namespace: ['x'], data: { a: 1 } },
      { event: 'other', name: 'note', data: 'plain text' },
      { event: 'malformed', name: 'values', data: '{"broken' },
      { event: 'values', data: { count: 1 } },
      { event: 'other', name: 'message', data: 5 },
    ]);
  });

  it('returns states and custom data that are null', async () => {
    const { stream } = await streamOf('event: custom\ndata: null\n\nevent: values\ndata: null\n\n');

    expect(await readAll(stream)).toMatchObject([
      { event: 'custom', data: null },
      { event: 'values', data: null },
    ]);
  });

  it.each([
    ...['metadata', 'updates', 'messages/metadata', 'events', 'tasks', 'checkpoints', 'debug', 'tools'],
    ...['feedback', 'messages', 'messages/partial', 'messages/complete'],
  ])('returns %s with data of another type as malformed', async (name) => {
    const isList = /^messages(?!\/metadata)/.test(name);
    const bad = { feedback: '{"k":"https://a.example","l":5}' }[name] ?? (isList ? '{}' : '[1]');
    const good = isList ? '[{}]' : '{}';
    const { stream } = await streamOf(
      [good, bad, 'null', '1'].map((data) => `event: ${name}\ndata: ${data}\n\n`).join(''),
    );

    expect((await readAll(stream)).map(({ event, data }) => [event, data])).toEqual([
      [name, JSON.parse(good)],
      ['malformed', bad],
      ['malformed', 'null'],
      ['malformed', '1'],
    ]);
  });

  it('reads its run id from the headers, or else from the first event', async () => {
    const byHead = await streamOf(METADATA, { 'content-location': '/threads/t-1/runs/r-0' });
    expect(byHead.stream).toMatchObject({ runId: 'r-0', threadId: 't-1' });
    await readAll(byHead.stream);
    expect(byHead.stream.runId).toBe('r-0');

    const byEvent = await streamOf(METADATA);
    expect(byEvent.stream.runId).toBeUndefined();
    await readAll(byEvent.stream);
    expect(byEvent.stream.runId).toBe('r-1');
  });

  it('can be read once', async () => {
    const { stream } = await streamOf(METADATA);
    await readAll(stream);

    const again = () => stream[Symbol.asyncIterator]();
    expect(again).toThrow('This stream is already being read');
    expect(again).toThrow(expect.objectContaining({ code: 'RUNSPAN_INVALID_REQUEST' }));
  });

  it('returns the error of a run and later events, and throws at the end', async () => {
    const { stream } = await streamOf(METADATA + ERROR + FEEDBACK);

    const { events, error } = await failing(stream);

    expect(events.map(({ event }) => event)).toEqual(['metadata', 'error', 'feedback']);
    expect(error).toMatchObject({
      name: 'RunFailedError',
      code: 'RUNSPAN_RUN_FAILED',
      message: 'The run r-1 failed: ValueError: no',
      runId: 'r-1',
      threadId: 't-1',
      error: 'ValueError',
      detail: 'no',
    });
    expect(await stream.feedback()).toEqual({ liked: 'https://f.example/1' });
  });

  it('throws the error of a run if the connection breaks after it', async () => {
    const { stream } = await streamOf((response) => response.write(ERROR, () => response.destroy()));

    expect((await failing(stream)).error).toMatchObject({ code: 'RUNSPAN_RUN_FAILED' });
  });

  it.each<[string, string | Answer, place: string, problem: string]>([
    ['within an event', `${METADATA}event: values\ndata: {"a":`, AFTER, 'the connection was closed within an event'],
    ['before the blank line of an event', `${METADATA}data: {}\n`, AFTER, 'the connection was closed within an event'],
    ['before any event', ': heartbeat\n\n', 'before any event of run r-1', 'the connection was closed'],
    [
      'by a reset',
      (response) => response.write(`${METADATA}id: 1\n${value(1)}`, () => response.destroy()),
      'after the event "values" (id 1) of run r-1',
      '',
    ],
  ])('throws if the connection is closed %s', async (_, answer, place, problem) => {
    const { url, stream } = await streamOf(answer, { 'content-location': '/threads/t-1/runs/r-1' });

    const { events, error } = await failing(stream);

    const { name, id } = events.at(-1) ?? {};
    expect(String(error)).toContain(`[POST] "${url}/threads/t-1/runs/stream": the stream broke ${place}: ${problem}`);
    expect(error).toMatchObject({
      ...{ name: 'StreamError', code: 'RUNSPAN_STREAM_BROKEN', runId: 'r-1', threadId: 't-1' },
      lastEvent: name && { name, id },
      message: expect.stringMatching(
        /; the server does not store the events of the run, so the stream cannot continue$/,
      ),
    });
  });

  it('accepts an error that is text', async () => {
    const { stream } = await streamOf('event: error\ndata: "Run not found"\n\n');

    const { events, error } = await failing(stream);

    expect(events).toMatchObject([{ event: 'error', data: { message: 'Run not found' } }]);
    expect(error).toMatchObject({ error: undefined, detail: 'Run not found' });
  });

  it('throws once and is done afterwards', async () => {
    const { stream } = await streamOf(ERROR);
    const iterator = stream[Symbol.asyncIterator]();

    expect(await iterator.next()).toMatchObject({ value: { event: 'error' } });
    await expect(iterator.next()).rejects.toThrow('failed');
    expect(await iterator.next()).toEqual({ done: true, value: undefined });
  });

  it('masks keys, and truncates the name of an event, in errors of the run and the stream', async () => {
    const options = { headers: { 'x-api-key': 'lsv2_abc' } };
    const failed = 'event: error\ndata: {"message":"key lsv2_abc"}\n\n';
    const { url } = await serve(({ url: path }, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      if (path?.endsWith('/wait')) response.end('{"__error__":{"message":"key lsv2_abc"}}');
      else if (path?.startsWith('/threads/broken/')) {
        response.write(`event: key_of_client${'x'.repeat(1_000)}\ndata: 1\n\n`, () => response.destroy());
      } else response.end(failed);
    });
    const { runs } = new AgentServer({ url, apiKey: 'key_of_client' });

    await expect(runs.wait('t', RUN, options)).rejects.toThrow(/failed: key \[secret\]$/);
    await expect(readAll(await runs.stream('t', RUN, options))).rejects.toThrow(/failed: key \[secret\]$/);
    await expect(readAll(await runs.stream('broken', RUN))).rejects.toMatchObject({
      message: expect.stringMatching(/^(?!.*key_of_client).{0,600}$/),
      lastEvent: { name: expect.stringMatching(/^\[secret\]x+/) },
    });
  });

  it.each(['close', 'asyncDispose'] as const)('closes the connection and ends a pending read by %s', async (way) => {
    const closed = gate();
    const { stream } = await streamOf((response) => {
      response.on('close', () => closed.open());
      response.write(METADATA);
    });
    const iterator = stream[Symbol.asyncIterator]();
    await iterator.next();
    const waiting = iterator.next();

    await (way === 'close' ? stream.close() : stream[Symbol.asyncDispose]());

    expect(await waiting).toEqual({ done: true, value: undefined });
    expect(await iterator.next()).toEqual({ done: true, value: undefined });
    await closed;
  });

  it('can be closed unread, repeatedly and after its end', async () => {
    const { stream } = await streamOf((response) => response.write(METADATA));
    await stream.close();
    await stream.close();
    expect(await readAll(stream)).toEqual([]);

    const ended = await streamOf(METADATA);
    await readAll(ended.stream);
    await ended.stream.close();
  });

  it('reads no further than needed', async () => {
    const full = gate();
    let written = 0;
    const { stream } = await streamOf((response) => {
      const block = value(1, 'x'.repeat(64 * 1024));
      const write = (): void => {
        while (!response.destroyed && written++ < 800) {
          if (response.write(block)) continue;
          // The sockets buffer data first. If nothing is read for a while, the reader has stopped.
          const waiting = setTimeout(() => full.open(), 200);
          return void response.once('drain', () => {
            clearTimeout(waiting);
            write();
          });
        }
        full.open();
      };
      write();
    });
    await stream[Symbol.asyncIterator]().next();

    await full;

    // 800 events are 50 MiB.
    expect(written).toBeLessThan(400);
    await stream.close();
  });

  describe('feedback', () => {
    const addresses = { liked: 'https://f.example/1' };
    const NAMES = ['metadata', 'values', 'values', 'feedback'];

    it.each<[string, (stream: RunStream) => Promise<AgentEvent[]>]>([
      ['right after feedback()', async (stream) => (await Promise.all([stream.feedback(), readAll(stream)]))[1]],
      ['right before feedback()', async (stream) => (await Promise.all([readAll(stream), stream.feedback()]))[0]],
      ['when feedback() has resolved', async (stream) => stream.feedback().then(() => readAll(stream))],
      ['and ends before feedback()', readAll],
    ])('removes no event from an iteration that starts %s', async (_, read) => {
      const { stream } = await streamOf(METADATA + value(1) + value(2) + FEEDBACK);

      expect((await read(stream)).map(({ event }) => event)).toEqual(NAMES);
      expect([await stream.feedback(), await stream.feedback()]).toEqual([addresses, addresses]);
    });

    it('can be awaited within the loop', async () => {
      const { stream } = await streamOf(METADATA + value(1) + value(2) + FEEDBACK);
      const names: string[] = [];

      for await (const { event } of stream) {
        names.push(event);
        expect(await stream.feedback()).toEqual(addresses);
      }

      expect(names).toEqual(NAMES);
    });

    it('rejects if the stream ends without it, has other data for it, breaks, fails or is left', async () => {
      const without = await streamOf(METADATA);
      await expect(without.stream.feedback()).rejects.toMatchObject({
        code: 'RUNSPAN_NO_FEEDBACK_ADDRESS',
        message: 'The run r-1 returned no feedback URLs; request them with `feedback_keys`',
      });

      const malformed = await streamOf('event: feedback\ndata: []\n\n');
      await expect(malformed.stream.feedback()).rejects.toMatchObject({ code: 'RUNSPAN_NO_FEEDBACK_ADDRESS' });

      const broken = await streamOf((response) => response.write(METADATA, () => response.destroy()));
      await expect(broken.stream.feedback()).rejects.toMatchObject({ lastEvent: { name: 'metadata' } });

      const failed = await streamOf(METADATA + ERROR);
      await expect(failed.stream.feedback()).rejects.toMatchObject({
        code: 'RUNSPAN_NO_FEEDBACK_ADDRESS',
        message: 'The run r-1 failed: ValueError: no; it returned no feedback URLs',
        cause: { code: 'RUNSPAN_RUN_FAILED' },
      });

      const left = await streamOf(METADATA + value(1) + FEEDBACK);
      for await (const _ of left.stream) break;
      await expect(left.stream.feedback()).rejects.toMatchObject({
        code: 'RUNSPAN_NO_FEEDBACK_ADDRESS',
        message: 'The stream was closed before the run r-1 returned feedback URLs',
      });

      const closed = await streamOf((response) => response.write(METADATA));
      const waiting = closed.stream.feedback();
      await closed.stream.close();
      await expect(waiting).rejects.toMatchObject({ code: 'RUNSPAN_NO_FEEDBACK_ADDRESS' });
    });

    it('causes no unhandled rejection if the loop throws first', async () => {
      const unhandled = unhandledRejections();
      const { stream } = await streamOf(METADATA + ERROR);
      const feedback = stream.feedback();

      expect((await failing(stream)).error).toMatchObject({ code: 'RUNSPAN_RUN_FAILED' });
      expect(await unhandled()).toEqual([]);
      await expect(feedback).rejects.toMatchObject({ cause: { code: 'RUNSPAN_RUN_FAILED' } });
    });

    it('drops events above the limit if nobody iterates, and prevents an iteration', async () => {
      const many = Array.from({ length: 40 }, (_, count) => value(count, 'x'.repeat(32 * 1024))).join('');
      const { stream } = await streamOf(METADATA + many + FEEDBACK);

      expect(await stream.feedback()).toEqual(addresses);
      expect(() => stream[Symbol.asyncIterator]()).toThrow('feedback() has read this stream');
    });

    it('waits for a slow reader and loses no event', async () => {
      const many = Array.from({ length: 40 }, (_, count) => value(count, 'x'.repeat(32 * 1024))).join('');
      const { stream } = await streamOf(METADATA + many + FEEDBACK);
      const iterator = stream[Symbol.asyncIterator]();
      await iterator.next();
      const feedback = stream.feedback();
      let count = 0;

      for (let step = await iterator.next(); step.done !== true; step = await iterator.next()) {
        if (step.value.event === 'values') expect(step.value.data.count).toBe(count++);
        await new Promise(setImmediate);
      }

      expect(count).toBe(40);
      expect(await feedback).toEqual(addresses);
    });
  });
});
