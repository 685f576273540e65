// Incoming requests, with the instrumentation `http` of `runspan/register`.
import { once } from 'node:events';
import {
  Agent,
  createServer,
  get,
  type IncomingMessage,
  type RequestListener,
  request,
  type ServerResponse,
} from 'node:http';
import { connect, type Socket } from 'node:net';
import { SpanKind } from '@opentelemetry/api';
import fc from 'fast-check';
import { beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest';
import { clock } from '#src/base/clock.ts';
import {
  createExporter,
  currentRun,
  fromHeaders,
  startRun,
  toHeaders,
  traceable,
  withContext,
  withExporter,
  withRun,
  withTrace,
} from '#src/index.ts';
import { recordFetch } from '#src/integrations/fetch/record-fetch.ts';
import { RunspanCallbackHandler } from '#src/langchain.ts';
import { RunSpanProcessor } from '#src/otel.ts';
import type { RunRecord } from '#src/run/record.ts';
import { outlineOf, type RunRecorder, recordRuns } from '#src/testing.ts';
import { record } from '../instrument/recorder.ts';
import { setUp as setUpTracer } from '../otel/set-up.ts';
import { cases } from '../support/campaign.ts';
import { gate } from '../support/gate.ts';
import { listenInTest } from '../support/listen-in-test.ts';
import { startReceiver } from '../support/receiver.ts';
import { until } from '../support/virtual-time.ts';

beforeAll(async () => {
  const environment = { RUNSPAN_INSTRUMENTATIONS: 'http', RUNSPAN_DEV: '{"recordBody":true}' };
  Object.assign(process.env, environment);
  await import('#src/register.ts');
  for (const name of Object.keys(environment)) delete process.env[name];
});

const answer = traceable(async (question: string) => ({ text: `You said: ${question}` }), { name: 'answer' });
const soon = () => new Promise((resolve) => setImmediate(resolve));

const serve = (listener: RequestListener): Promise<string> => listenInTest(createServer(listener));

const textOf = async (message: IncomingMessage): Promise<string> => {
  let text = '';
  for await (const chunk of message) text += chunk;
  return text;
};

/** Waits until all recorded runs have ended, and returns their outline. */
async function outline(recorder: RunRecorder): Promise<string[]> {
  await until(() => recorder.runs.every(({ end_time }) => end_time !== undefined));
  return outlineOf(recorder).split('\n');
}

/** Sends one request and returns the outline of what a handler has recorded. */
async function recordedBy(
  handler: (request: IncomingMessage, response: ServerResponse) => unknown,
  init?: RequestInit,
  path = '/ask',
): Promise<{ outline: string[]; recorder: RunRecorder }> {
  const recorder = record();
  const isDone = gate();
  const url = await serve(async (request, response) => {
    response.on('close', () => setImmediate(() => isDone.open()));
    await handler(request, response);
    response.end();
  });
  await (await fetch(url + path, init)).text();
  await isDone;
  return { outline: await outline(recorder), recorder };
}

test('two calls of a request are one trace, below a run with the method, the path and the status', async () => {
  const { recorder } = await recordedBy(
    async () => {
      await soon();
      await answer('one');
      await answer('two');
    },
    { method: 'POST', body: '{"secret":1}', headers: { authorization: 'Bearer of-the-caller' } },
    '/ask?token=of-the-query#x',
  );

  const [root, one, two] = recorder.runs;
  expect(recorder.runs).toHaveLength(3);
  expect(root).toMatchObject({ name: 'POST /ask', run_type: 'chain', trace_id: root?.id });
  expect([root?.inputs, root?.outputs]).toEqual([{}, {}]);
  expect(root?.extra?.metadata).toEqual({
    'http.request.method': 'POST',
    'url.path': '/ask',
    'http.response.status_code': 200,
  });
  expect(root?.parent_run_id).toBeUndefined();
  expect([one?.parent_run_id, two?.parent_run_id]).toEqual([root?.id, root?.id]);
  expect(one?.extra?.metadata).toBeUndefined();
  expect((root?.start_time ?? '') < (one?.start_time ?? '')).toBe(true);
  expect(JSON.stringify(recorder.runs)).not.toContain('of-the');
});

test('neither a run nor its recorded body contains the query of the request', async () => {
  const recorder = record();
  const url = await serve(async (_, response) => {
    await answer('one');
    response.end();
  });
  const text = fc.stringMatching(/^\?[\w/:@?%&=.;+-]*$/);
  const property = fc.asyncProperty(fc.constantFrom('', 'http://me:hidden@a.test'), text, async (origin, query) => {
    const { length } = recorder.runs;
    get({ port: new URL(url).port, path: `${origin}/ask${query}hidden`, agent: false }, (reply) => reply.resume());
    await until(() => recorder.runs.length > length && recorder.runs.every(({ end_time }) => end_time !== undefined));
    const { attachments, ...run } = recorder.runs[length] as RunRecord & { attachments: { bytes: Uint8Array }[] };
    const body = new TextDecoder().decode(attachments[0]?.bytes);
    expect(JSON.parse(body)).toEqual({ method: 'GET', path: '/ask', body: '' });
    expect(JSON.stringify(run)).not.toContain('hidden');
  });
  await fc.assert(property, { numRuns: cases(40) });
});

test('a request without a recorded call records nothing', async () => {
  const off = traceable(() => 1, { name: 'off', enabled: false });
  const { recorder } = await recordedBy(async () => {
    off();
    expect(currentRun()).toBeUndefined();
    expect(toHeaders()).toEqual({});
    withContext({ userId: 'ada' }, () => {});
    await soon();
  });
  expect(recorder.runs).toEqual([]);
});

test('a call with tracing off starts no run, and does not change that', async () => {
  const recorder = record();
  const exporter = createExporter({ endpoint: 'http://127.0.0.1:9', tracing: false });
  const url = await serve(async (_request, response) => {
    traceable(() => 1, { name: 'not sent', exporter })();
    response.end();
  });
  await (await fetch(url)).text();
  expect(recorder.runs).toEqual([]);
});

test('currentRun and toHeaders give the run of the request, once it exists', async () => {
  const { recorder } = await recordedBy(async () => {
    await answer('one');
    const root = currentRun();
    expect(root?.name).toBe('GET /ask');
    expect(toHeaders()['runspan-trace']).toBe(root?.dottedOrder);
    root?.set({ name: 'renamed', tags: ['beta'], outputs: { own: true } });
    await answer('two');
  });
  expect(await outline(recorder)).toEqual(['renamed (chain)', '  answer (chain)', '  answer (chain)']);
  expect(recorder.runs[0]).toMatchObject({ tags: ['beta'], outputs: { own: true } });
});

const BELOW = ['POST /ask (chain)', '  answer (chain)'];

test.each<[string, (request: IncomingMessage, response: ServerResponse) => unknown]>([
  ['at once', () => answer('x')],
  ['after several awaits', async (message) => answer(await textOf(message))],
  ['in a timer', () => new Promise((resolve) => setTimeout(() => resolve(answer('x')), 1))],
  [
    'in an event of the body',
    (message) => new Promise((resolve) => message.on('end', () => resolve(answer('x'))).resume()),
  ],
  ['in a chunk of the body', (message) => new Promise((resolve) => message.on('data', () => resolve(answer('x'))))],
  ['when the response is finished', (_, response) => response.on('finish', () => void answer('x'))],
  ['in startRun', () => startRun({ name: 'answer' }).end()],
  ['in withRun without a caller', ({ headers }) => withRun(fromHeaders(headers), () => answer('x'))],
  ['in a step of LangChain', () => stepOf('answer')],
])('a first call %s is below its request', async (_, handler) => {
  const body = new ReadableStream({
    async pull(controller) {
      await soon();
      await soon();
      controller.enqueue(new TextEncoder().encode('x'));
      controller.close();
    },
  });
  const init = { method: 'POST', body, duplex: 'half' } as RequestInit;
  expect((await recordedBy(handler, init)).outline).toEqual(BELOW);
});

async function stepOf(name: string): Promise<void> {
  const handler = new RunspanCallbackHandler();
  const id = '01989cb5-5b3f-7000-8000-00000000000a';
  await handler.handleChainStart({ lc: 1, type: 'not_implemented', id: [name] }, { input: 'x' }, id);
  await handler.handleChainEnd({ output: 'y' }, id);
}

test('model calls through fetch are below their request', async () => {
  const model = await serve((_request, response) => {
    response
      .setHeader('content-type', 'application/json')
      .end('{"choices":[{"message":{"content":"hi"}}],"usage":{"prompt_tokens":3,"completion_tokens":5}}');
  });
  const body = JSON.stringify({ model: 'small', messages: [{ role: 'user', content: 'Tea' }] });
  const url = `${model}/v1/chat/completions`;
  const init = { method: 'POST', body, headers: { 'content-type': 'application/json' } };
  onTestFinished(recordFetch());
  const { outline, recorder } = await recordedBy(async () => {
    await (await fetch(url, init)).json();
    await (await fetch(new Request(url, init))).json();
  });
  expect(outline).toEqual(['GET /ask (chain)', '  openai.chat.completions (llm)', '  openai.chat.completions (llm)']);
  // The tokens of a call count once.
  expect(recorder.runs[0]?.outputs).toEqual({});
  expect(recorder.runs[1]?.outputs).toHaveProperty('usage_metadata');
});

describe('every call is below exactly the run of its own request', () => {
  /** Answers with the number of the request, after calls between which other requests run. */
  const numbered: RequestListener = async (message, response) => {
    const number = message.url?.slice(1) ?? '';
    await answer(number);
    for (let turn = 0; turn < Number(number) % 4; turn++) await soon();
    await Promise.all([answer(number), new Promise((resolve) => setTimeout(() => resolve(answer(number)), 1))]);
    message.on('end', () => void answer(number).then(() => response.end(number))).resume();
  };

  async function expectOwn(recorder: RunRecorder, count: number): Promise<void> {
    await until(() => recorder.runs.length === count * 5 && recorder.runs.every((run) => run.end_time !== undefined));
    const roots = recorder.runs.filter(({ parent_run_id }) => parent_run_id === undefined);
    const pathOf = ({ extra }: RunRecord) => extra?.metadata?.['url.path'];
    expect(new Set(roots.map(pathOf)).size).toBe(count);
    for (const root of roots) {
      const below = recorder.runs.filter(({ parent_run_id }) => parent_run_id === root.id);
      expect(root.name).toBe('POST /:id');
      expect(below.map(({ inputs }) => `/${inputs.input}`)).toEqual(Array(4).fill(pathOf(root)));
    }
  }

  test.each([
    ['keep-alive connections', new Agent({ keepAlive: true, maxSockets: 8 })],
    ['a connection each', new Agent({ keepAlive: false })],
  ])('with many concurrent requests over %s', async (_, agent) => {
    onTestFinished(() => agent.destroy());
    const recorder = record();
    const url = await serve(numbered);
    const send = (number: number) =>
      new Promise<string>((resolve, reject) => {
        const sent = request(`${url}/${number}`, { agent, method: 'POST' }, (message) => resolve(textOf(message)));
        sent.on('error', reject);
        sent.write('first');
        setImmediate(() => sent.end('second'));
      });
    const numbers = [...Array(cases(200)).keys()];
    expect(await Promise.all(numbers.map(send))).toEqual(numbers.map(String));
    await expectOwn(recorder, numbers.length);
  });

  test('with pipelined requests on one socket', async () => {
    const recorder = record();
    const socket = connect(Number(new URL(await serve(numbered)).port));
    onTestFinished(() => void socket.destroy());
    let received = '';
    socket.setEncoding('utf8').on('data', (text) => {
      received += text;
    });
    const head = (number: number) => `POST /${number} HTTP/1.1\r\nhost: x\r\ncontent-length: 4\r\n\r\n`;
    socket.write(`${head(0)}body${head(1)}body${head(2)}bo`);
    await soon();
    socket.write(`dy${head(3)}`);
    await soon();
    socket.write('body');
    await until(() => received.split('HTTP/1.1 200').length === 5);
    await expectOwn(recorder, 4);
  });
});

test('an upgraded connection belongs to no request, also after a request on the same socket', async () => {
  const recorder = record();
  const server = createServer(async (_request, response) => {
    await answer('request');
    response.end('x');
  });
  server.on('upgrade', (_request, socket: Socket) => {
    void answer('upgrade');
    socket.write('HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: own\r\n\r\n');
    socket.on('data', async () => {
      await answer('message');
      socket.end();
    });
  });
  const url = await listenInTest(server);
  const socket = connect(Number(new URL(url).port));
  socket.write('GET /first HTTP/1.1\r\nhost: x\r\n\r\n');
  await once(socket, 'data');
  socket.write('GET /second HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: own\r\n\r\n');
  await once(socket, 'data');
  socket.end('message');
  await until(() => recorder.runs.length === 4);
  expect(await outline(recorder)).toEqual([
    'GET /first (chain)',
    '  answer (chain)',
    'answer (chain)',
    'answer (chain)',
  ]);
});

describe('the end of a request', () => {
  test('a streamed response ends its run when the response is closed', async () => {
    const recorder = record();
    const isRead = gate();
    const url = await serve(async (_request, response) => {
      response.setHeader('content-type', 'text/event-stream');
      for await (const word of words()) response.write(`data: ${word}\n\n`);
      await isRead;
      response.end();
    });
    const words = traceable(
      async function* () {
        yield* ['one', 'two'];
      },
      { name: 'words' },
    );
    const response = await fetch(url);
    const reader = (response.body as ReadableStream<Uint8Array>).getReader();
    await reader.read();
    await until(() => recorder.runs.some(({ name, end_time }) => name === 'words' && end_time !== undefined));
    expect(recorder.run('GET /').end_time).toBeUndefined();
    isRead.open();
    while (!(await reader.read()).done);
    expect(await outline(recorder)).toEqual(['GET / (chain)', '  words (chain)']);
  });

  test('an aborted request is cancelled, and has no status if no head was sent', async () => {
    const recorder = record();
    const isAsked = gate();
    const url = await serve(async () => {
      await answer('x');
      isAsked.open();
    });
    const sent = get(url).on('error', () => {});
    await isAsked;
    sent.destroy();
    await outline(recorder);
    const { error, extra } = recorder.run('GET /');
    expect(error).toBeUndefined();
    expect(extra).toMatchObject({
      metadata: { 'http.request.method': 'GET', 'url.path': '/' },
      runspan_end_reason: 'cancelled',
    });
  });

  test('a response that the application destroys with an error has failed', async () => {
    const recorder = record();
    const url = await serve(async (_, response) => {
      await answer('Hi?');
      response.destroy(new RangeError('no more'));
    });
    await expect(fetch(url)).rejects.toThrow();
    expect((await outline(recorder))[0]).toContain('RangeError: no more');
  });

  test('the requests of a socket end with the socket, also those whose response waits for another', async () => {
    const recorder = record();
    const areAsked = gate();
    const paths: string[] = [];
    const url = await serve(async ({ url: path = '' }) => {
      await answer(path);
      paths.push(path);
      if (paths.length === 3) areAsked.open();
    });
    const socket = connect(Number(new URL(url).port));
    socket.write(['/1', '/2', '/3'].map((path) => `GET ${path} HTTP/1.1\r\nhost: x\r\n\r\n`).join(''));
    await areAsked;
    socket.destroy();
    expect(await outline(recorder)).toHaveLength(6);
    const requests = recorder.runs.filter(({ parent_run_id }) => parent_run_id === undefined);
    expect(requests.map(({ extra }) => extra?.runspan_end_reason)).toEqual(Array(3).fill('cancelled'));
  });

  test.each([
    [199 + 1, undefined],
    [404, undefined],
    [499, undefined],
    [500, 'HTTP 500'],
    [503, 'HTTP 503'],
  ])('the status %i gives the error %s', async (status, error) => {
    const { recorder } = await recordedBy(async (_request, response) => {
      response.statusCode = status;
      await answer('x');
    });
    expect(recorder.runs[0]?.error).toBe(error);
    expect(recorder.runs[0]?.extra?.metadata?.['http.response.status_code']).toBe(status);
  });

  test('a HEAD request and a response without a body end', async () => {
    const { outline: head } = await recordedBy(() => answer('x'), { method: 'HEAD' });
    expect(head).toEqual(['HEAD /ask (chain)', '  answer (chain)']);
  });

  test('a first call after the end is a trace of its own, and a later call stays below the run', async () => {
    const { outline: without } = await recordedBy((_request, response) => {
      response.on('close', () => void answer('late'));
    });
    expect(without).toEqual(['answer (chain)']);

    const isClosed = gate();
    const { recorder } = await recordedBy(async (_request, response) => {
      await answer('in time');
      response.on('close', async () => {
        await answer('late');
        isClosed.open();
      });
    });
    await isClosed;
    expect(await outline(recorder)).toEqual(['GET /ask (chain)', '  answer (chain)', '  answer (chain)']);
  });

  test.each([
    [59_000, 1],
    [61_000, 2],
  ])('a call %i ms after the end makes %i traces', async (lateMs, traces) => {
    const isClosed = gate();
    const { recorder } = await recordedBy(async (_request, response) => {
      await answer('in time');
      response.on('close', async () => {
        const nowUs = clock.monotonicUs();
        const later = vi.spyOn(clock, 'monotonicUs').mockImplementation(() => nowUs + lateMs * 1_000);
        await answer('late').finally(() => later.mockRestore());
        isClosed.open();
      });
    });
    await isClosed;
    await outline(recorder);
    expect(new Set(recorder.runs.map(({ trace_id }) => trace_id)).size).toBe(traces);
  });
});

describe('the trace of a request', () => {
  const CALLER = '01989cb5-5b3f-7000-8000-000000000001';
  const order = `20260101T000000000000Z${CALLER}`;

  test('is that of the caller, of whose baggage only the sampling decision is read', async () => {
    const baggage = 'runspan-tags=%5B%22foreign%22%5D,runspan-project=foreign';
    const { recorder } = await recordedBy(() => answer('x'), { headers: { 'runspan-trace': order, baggage } });
    const [root, call] = recorder.runs;
    expect(root).toMatchObject({ name: 'GET /ask', trace_id: CALLER, parent_run_id: CALLER, session_name: 'default' });
    expect(root?.dotted_order.startsWith(`${order}.`)).toBe(true);
    expect(root?.tags).toBeUndefined();
    expect(call?.parent_run_id).toBe(root?.id);

    const headers = { 'runspan-trace': order, baggage: 'runspan-sampled=false' };
    expect((await recordedBy(() => answer('x'), { headers })).recorder.runs).toEqual([]);
  });

  test('is below the caller in the same process only through headers', async () => {
    const recorder = record();
    const url = await serve(async (message, response) => {
      if (message.url === '/inner' || message.url === '/other') await answer(message.url);
      else {
        await answer('outer');
        await traceable(() => fetch(`${url}/inner`, { headers: toHeaders() }), { name: 'call' })();
        await fetch(`${url}/other`);
      }
      response.end();
    });
    await (await fetch(`${url}/outer`)).text();
    expect(await outline(recorder)).toEqual([
      'GET /outer (chain)',
      '  answer (chain)',
      '  call (chain)',
      '    GET /inner (chain)',
      '      answer (chain)',
      'GET /other (chain)',
      '  answer (chain)',
    ]);
  });

  test('is not that of a call with root, nor of withTrace', async () => {
    const { outline } = await recordedBy(async () => {
      traceable(() => {}, { name: 'own', root: true })();
      await answer('x');
      await withTrace('job', () => answer('y'));
    });
    expect(outline).toEqual(['GET /ask (chain)', '  answer (chain)', 'own (chain)', 'job (chain)', '  answer (chain)']);
  });

  test('is that of a run that the application has made current', async () => {
    const { outline } = await recordedBy(async () => {
      const run = startRun({ name: 'by hand', root: true });
      await withRun(run, () => answer('x'));
      run.end();
    });
    expect(outline).toEqual(['by hand (chain)', '  answer (chain)']);
  });

  test('is left out or kept as a whole by the sampler, which sees the request', async () => {
    const seen: string[] = [];
    const receiver = await startReceiver();
    const sampler = ({ name }: { name: string }) => {
      seen.push(name);
      return name === 'GET /kept';
    };
    const exporter = createExporter({ endpoint: receiver.url, sampler });
    const url = await serve(async (_request, response) => {
      await withExporter(exporter, async () => {
        await answer('one');
        await answer('two');
      });
      response.end();
    });
    for (const path of ['/kept', '/left-out']) await (await fetch(url + path)).text();
    await until(() => exporter.stats().open === 0);
    await exporter.close();
    expect(seen).toEqual(['GET /kept', 'GET /left-out']);
    expect((await receiver.runs()).map(({ name }) => name)).toEqual(['GET /kept', 'answer', 'answer']);
    expect(exporter.stats()).toMatchObject({ sent: 3, sampledOut: 3 });
  });
});

describe('the fields of a request', () => {
  test('the project, the conversation and the user are those of the first call', async () => {
    const { recorder } = await recordedBy(async () => {
      await withContext({ userId: 'ada', tags: ['vip'] }, () =>
        traceable(() => 1, { name: 'first', project: 'shop', threadId: 't1' } as object)(),
      );
      await answer('x');
    });
    const [root, first, second] = recorder.runs;
    expect(root).toMatchObject({ session_name: 'shop', tags: ['vip'] });
    expect(root?.extra?.metadata).toMatchObject({ user_id: 'ada', thread_id: 't1' });
    expect(first?.extra?.metadata).toEqual({ user_id: 'ada', thread_id: 't1' });
    expect(second).toMatchObject({ session_name: 'shop' });
    // What is set for one call is not set for another, which may be of another user.
    expect([second?.tags, second?.extra?.metadata]).toEqual([undefined, undefined]);
  });

  test('fields of withContext that surround a later call are recorded', async () => {
    const { recorder } = await recordedBy(async () => {
      await withContext({ userId: 'ada' }, async () => {
        await answer('one');
        await withContext({ userId: 'grace' }, () => answer('two'));
      });
    });
    expect(recorder.runs.map(({ extra }) => extra?.metadata?.user_id)).toEqual(['ada', 'ada', 'grace']);
  });

  test('of a request without a known route, ids are no part of the name', async () => {
    const { recorder } = await recordedBy(() => answer('x'), {}, '/users/7/orders?page=2');
    expect(recorder.runs[0]?.name).toBe('GET /users/:id/orders');
    expect(recorder.runs[0]?.extra?.metadata).toMatchObject({ 'url.path': '/users/7/orders' });
  });

  test('of an Express request, the route is the name', async () => {
    const { recorder } = await recordedBy(
      async (message) => {
        await answer('x');
        Object.assign(message, { url: '/7', baseUrl: '/users', route: { path: '/:id' } });
      },
      {},
      '/users/7',
    );
    expect(recorder.runs[0]?.name).toBe('GET /users/:id');
    expect(recorder.runs[0]?.extra?.metadata).toMatchObject({ 'http.route': '/users/:id', 'url.path': '/users/7' });
  });
});

test('with several exporters, the run goes where the first call goes, and a later call where it goes without a request', async () => {
  const [recorder, other] = [record(), recordRuns()];
  other.stop();
  const url = await serve(async (_request, response) => {
    await withExporter(other.exporter, () => answer('other'));
    await answer('own');
    await traceable(() => answer('nested'), { name: 'named', exporter: other.exporter })();
    response.end();
  });
  await (await fetch(url)).text();
  await until(() => other.runs.length === 4 && other.runs.every(({ end_time }) => end_time !== undefined));
  const [root] = other.runs;
  expect(outlineOf(other).split('\n')).toEqual([
    'GET / (chain)',
    '  answer (chain)',
    '  named (chain)',
    '    answer (chain)',
  ]);
  expect(recorder.runs.map(({ name, parent_run_id }) => [name, parent_run_id])).toEqual([['answer', root?.id]]);
});

describe('with OpenTelemetry', () => {
  test('the span of the request is the parent, and no other run is made', async () => {
    const { tracer, recorder } = setUpTracer();
    const url = await serve((_request, response) => {
      void tracer.startActiveSpan('GET', { kind: SpanKind.SERVER }, async (span) => {
        await answer('x');
        tracer.startSpan('query').end();
        response.end();
        span.end();
      });
    });
    await (await fetch(url)).text();
    expect((await outline(recorder)).sort()).toEqual(['  answer (chain)', '  query (chain)', 'GET (chain)']);
  });

  test.each<[string, RunSpanProcessor]>([
    ['another span', new RunSpanProcessor({ shouldExport: 'all' })],
    [
      'a call inside a span that is left out',
      new RunSpanProcessor({ shouldExport: ({ kind }) => kind !== SpanKind.SERVER }),
    ],
  ])('%s is below the run of its request', async (name, processor) => {
    const { tracer, recorder } = setUpTracer({ processors: [processor] });
    const kind = name === 'another span' ? SpanKind.INTERNAL : SpanKind.SERVER;
    const url = await serve(async (_request, response) => {
      await tracer.startActiveSpan('step', { kind }, async (span) => {
        await answer('x');
        span.end();
      });
      await answer('y');
      response.end();
    });
    await (await fetch(url)).text();
    const expected =
      name === 'another span'
        ? ['GET / (chain)', '  step (chain)', '    answer (chain)', '  answer (chain)']
        : ['GET / (chain)', '  answer (chain)', '  answer (chain)'];
    await until(() => recorder.runs.length === expected.length);
    expect((await outline(recorder)).sort()).toEqual(expected.sort());
  });
});

test('requests to a receiver in the same process record nothing', async () => {
  const receiver = await startReceiver();
  const exporter = createExporter({ endpoint: receiver.url });
  const recorder = record();
  await withExporter(exporter, () => answer('x'));
  await exporter.close();
  expect(recorder.runs).toEqual([]);
  expect(exporter.stats()).toMatchObject({ created: 1, sent: 1 });
});
