import { setTimeout } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { StreamTrace } from '#src/clients/agent-server/streams/stream-trace.ts';
import { AgentServer, type AgentServerOptions } from '#src/clients.ts';
import { traceable } from '#src/instrument/traceable.ts';
import { fromHeaders } from '#src/run/propagation/propagation.ts';
import { startRun, withRun } from '#src/run/start-run.ts';
import { serve } from '../http/server.ts';
import { record, treeOf } from '../instrument/recorder.ts';
import { makeSink } from '../run/memory-sink.ts';
import { collectUntil } from '../support/garbage.ts';
import { gate } from '../support/gate.ts';

const RUN = { assistant_id: 'agent', input: { messages: [{ type: 'human', content: 'weather?' }] } };

const KEY = 'lsv2_agent_key_1';
const STATE = { messages: [{ content: 'weather?' }, { content: 'It is sunny in Kiel.' }] };

/** An agent server whose runs have ended with the same state, or with an error if the input is `fail`. */
async function connect(options: Partial<AgentServerOptions> = {}) {
  const served = await serve(({ url = '' }, response) => {
    const isFailing = served.seen.at(-1)?.body.includes('"fail"');
    const [name, data] = isFailing ? ['error', { error: 'RangeError', message: 'no such city' }] : ['values', STATE];
    if (url.includes('/none/')) return response.writeHead(404).end('{"detail":"no such thread"}');
    response.setHeader('content-location', '/threads/t-1/runs/r-1');
    if (url.endsWith('/batch')) response.end('[]');
    else if (url.endsWith('/wait')) response.end(JSON.stringify(isFailing ? { __error__: data } : data));
    else if (!url.endsWith('/stream')) response.end('{}');
    else
      response.setHeader('content-type', 'text/event-stream').end(`event: ${name}\ndata: ${JSON.stringify(data)}\n\n`);
  });
  const server = new AgentServer({ url: served.url, apiKey: KEY, ...options });
  return { ...served, server, recorder: record() };
}

/** Returns a client of a server that sends this stream, and a promise of the end of its first response. */
async function streaming(text: string) {
  const closed = gate();
  const { url } = await serve((_, response) => {
    response.on('close', () => closed.open());
    response.writeHead(200, { 'content-type': 'text/event-stream' }).write(text);
    if (!text.endsWith('…')) response.end();
  });
  return { server: new AgentServer({ url }), recorder: record(), closed };
}

const within = <Result>(fn: () => Promise<Result>): Promise<Result> => traceable(fn, { name: 'answer' })();

async function drain(stream: AsyncIterable<unknown>): Promise<void> {
  for await (const _ of stream);
}

describe('a call of an agent server within a run', () => {
  it('is recorded as a child run and propagates the trace', async () => {
    const { seen, server, recorder } = await connect();

    await within(async () => {
      await server.runs.create('t-1', RUN);
      await server.runs.wait('t-1', RUN);
      await drain(await server.runs.stream('t-1', RUN));
      await server.statelessRuns.create(RUN);
      await server.statelessRuns.wait(RUN);
      await drain(await server.statelessRuns.stream(RUN));
      await server.statelessRuns.batch([RUN]);
    });

    const stateless = ['create', 'wait', 'stream', 'batch'].map((name) => `statelessRuns.${name}`);
    const names = ['runs.create', 'runs.wait', 'runs.stream', ...stateless];
    expect(treeOf(recorder.runs)).toEqual({ answer: Object.fromEntries(names.map((name) => [name, {}])) });
    for (const [at, name] of names.entries()) {
      const { id, dotted_order } = recorder.run(name);
      const headers = seen[at]?.headers ?? {};
      expect(headers['langsmith-trace']).toBe(dotted_order);
      expect(headers['runspan-trace']).toBe(dotted_order);
      expect(fromHeaders(headers)).toMatchObject({ id, traceId: recorder.run('answer').id });
    }
  });

  it('records its inputs and outputs without the key', async () => {
    const { server, recorder } = await connect();

    await within(async () => {
      await server.runs.wait('t-1', RUN);
      await drain(await server.runs.stream('t-1', { ...RUN, stream_mode: 'values' }));
    });

    const inputs = { thread_id: 't-1', assistant_id: 'agent', input: RUN.input };
    expect(recorder.run('runs.wait')).toMatchObject({ run_type: 'chain', inputs, outputs: STATE });
    expect(recorder.run('runs.stream')).toMatchObject({ run_type: 'chain', inputs, outputs: STATE });
    for (const name of ['runs.wait', 'runs.stream']) {
      expect(recorder.run(name).extra?.metadata).toMatchObject({ agent_run_id: 'r-1', agent_thread_id: 't-1' });
    }
    expect(JSON.stringify(recorder.runs)).not.toContain(KEY);
  });

  it('fails with the error of the call', async () => {
    const { server, recorder } = await connect();
    const failing = { ...RUN, input: 'fail' };

    await within(async () => {
      await server.runs.wait('t-1', failing).catch(() => {});
      await server.runs
        .stream('t-1', failing)
        .then(drain, () => {})
        .catch(() => {});
      await server.runs.stream('none', RUN).catch(() => {});
    });

    const [waited, streamed, refused] = recorder.runs.slice(1);
    expect(waited?.error).toMatch(/^RunFailedError: The run r-1 failed: RangeError: no such city/);
    expect(streamed?.error).toMatch(/^RunFailedError: The run r-1 failed: RangeError: no such city/);
    expect(refused?.error).toMatch(/^ApiError: .* 404 no such thread/);
  });

  it('keeps the baggage of the client', async () => {
    const { seen, server } = await connect({ headers: { Baggage: 'tenant=7' } });
    const run = startRun({ name: 'answer', project: 'chat' });

    await withRun(run, () => server.runs.create('t-1', RUN));

    expect(seen.at(-1)?.headers.baggage).toBe('tenant=7,runspan-project=chat');
  });

  it('propagates nothing with `propagate: false`', async () => {
    const { seen, server, recorder } = await connect({ propagate: false });

    await within(async () => {
      await server.runs.create('t-1', RUN);
      await drain(await server.runs.stream('t-1', RUN));
    });

    expect(treeOf(recorder.runs)).toEqual({ answer: { 'runs.create': {}, 'runs.stream': {} } });
    expect(seen.map(({ headers }) => headers['langsmith-trace'])).toEqual([undefined, undefined]);
  });
});

it('a call of an agent server outside of any run is not recorded and propagates nothing', async () => {
  const { seen, server, recorder } = await connect();

  await server.runs.create('t-1', RUN);
  await drain(await server.runs.stream('t-1', RUN));

  expect(recorder.runs).toEqual([]);
  for (const { headers } of seen) {
    expect(Object.keys(headers).filter((name) => /trace|baggage/.test(name))).toEqual([]);
  }
});

describe('the recorded run of a stream', () => {
  const EVENTS = 'event: updates\ndata: {"plan":{"a":1}}\n\nevent: custom\ndata: "half"\n\n';

  it('has the run id of the first event, and the events if there was no state, but no feedback URLs', async () => {
    const { server, recorder } = await streaming(
      `event: metadata\ndata: {"run_id":"r-1"}\n\n${EVENTS}event: feedback\ndata: {"k":"https://f.example/secret"}\n\nevent: feedback\ndata: ["https://f.example/secret"]\n\n`,
    );

    await within(async () => drain(await server.runs.stream('t-1', RUN)));

    expect(recorder.run('runs.stream').outputs).toEqual({
      outputs: [
        { event: 'updates', data: { plan: { a: 1 } } },
        { event: 'custom', data: 'half' },
      ],
    });
    expect(JSON.stringify(recorder.runs)).not.toContain('f.example');
    const metadata = { agent_run_id: 'r-1', agent_thread_id: 't-1' };
    expect(recorder.run('runs.stream').extra).toMatchObject({ metadata });
  });

  it('has the last state of the graph itself, as it was received', async () => {
    const { server, recorder } = await streaming(
      'event: values\ndata: {"n":1}\n\nevent: values|sub:1\ndata: {"n":9}\n\nevent: values\ndata: {"n":2}\n\nevent: values|sub:1\ndata: {"n":8}\n\n',
    );

    await within(async () => {
      for await (const event of await server.runs.stream<{ n: number }>('t-1', RUN)) {
        if (event.event === 'values') event.data.n = 100;
      }
    });

    expect(recorder.run('runs.stream').outputs).toEqual({ n: 2 });
  });

  it('ends with the stream, also if only feedback() reads it', async () => {
    const { server, recorder } = await streaming('event: feedback\ndata: {"k":"u"}\n\n');

    await within(async () => {
      const stream = await server.runs.stream('t-1', RUN);
      expect(recorder.run('runs.stream').end_time).toBeUndefined();
      await stream.feedback();
      await drain(stream);
      expect(recorder.run('runs.stream').end_time).toBeDefined();
    });
  });

  it('is cancelled with the received events when the loop is left or the stream is closed', async () => {
    const { server, recorder } = await streaming(`${EVENTS}…`);

    await within(async () => {
      for await (const { event } of await server.runs.stream('t-1', RUN)) if (event === 'updates') break;
      await (await server.runs.stream('t-1', RUN)).close();
    });

    const [left, closed] = recorder.runs.slice(1);
    expect(left).toMatchObject({
      extra: { runspan_end_reason: 'cancelled' },
      outputs: { outputs: [{ event: 'updates' }] },
    });
    expect(closed).toMatchObject({ extra: { runspan_end_reason: 'cancelled' } });
    expect([left?.error, closed?.error]).toEqual([undefined, undefined]);
  });

  it('is interrupted if the stream is garbage-collected, which closes the connection', async () => {
    const { server, recorder, closed } = await streaming(`${EVENTS}…`);

    await within(async () => {
      await server.runs.stream('t-1', RUN);
    });
    await collectUntil(() => recorder.run('runs.stream').end_time !== undefined);

    expect(recorder.run('runs.stream')).toMatchObject({
      error: expect.stringMatching(/^Interrupted: the result was garbage-collected before it ended/),
      extra: { runspan_end_reason: 'interrupted' },
    });
    await closed;
  });

  it('stays open during a read, and is interrupted if the stream is not read', async () => {
    const run = startRun({ name: 'runs.stream', exporter: makeSink({ streamIdleMs: 20 }) });
    const trace = new StreamTrace(run, 'runs.stream');
    const stream = {};

    void trace.step(() => new Promise(() => {}), undefined, []);
    trace.watch(stream);
    await setTimeout(100);
    expect(run.isOpen).toBe(true);

    trace.chunk({ name: 'custom', data: 1 });
    await expect.poll(() => run.isOpen).toBe(false);
    expect(stream).toBeDefined();
  });

  it('keeps at most the events that fit into a payload', async () => {
    const many = Array.from({ length: 12_000 }, (_, n) => `event: custom\ndata: ${n}\n\n`).join('');
    const { server, recorder } = await streaming(many);

    await within(async () => drain(await server.runs.stream('t-1', RUN)));

    const { outputs, extra } = recorder.run('runs.stream');
    expect(outputs?.outputs).toHaveLength(10_000);
    expect(extra?.metadata).toMatchObject({ dropped_chunks: 2_000 });
  });
});
