// Model calls that a span and another source record. Spans of SDKs have no content by default, so the other source
// completes the run of the span. Spans: https://github.com/open-telemetry/semantic-conventions-genai and
// https://github.com/anthropics/anthropic-sdk-typescript/blob/main/docs/opentelemetry.md
import type Anthropic from '@anthropic-ai/sdk';
import { type Attributes, type Span, SpanStatusCode, type Tracer } from '@opentelemetry/api';
import type { BasicTracerProvider } from '@opentelemetry/sdk-trace-base';
import fc from 'fast-check';
import { afterEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { wrapAnthropic } from '#src/anthropic.ts';
import { withContext } from '#src/index.ts';
import { recordFetch } from '#src/integrations/fetch/record-fetch.ts';
import { RunSpanProcessor } from '#src/otel.ts';
import type { RunRecord } from '#src/run/record.ts';
import type { RunRecorder } from '#src/testing.ts';
import { ask, localModel, makeClient } from '../integrations/anthropic-client.ts';
import { inSpan, noting, setUp, soon, tree } from './set-up.ts';

afterEach(() => vi.unstubAllEnvs());

const model = localModel();
const SDK = 'com.anthropic.sdk.typescript';
const question = ask('Is it raining?');
const inputs = { messages: [{ role: 'user', content: 'Is it raining?' }] };

/** Sets up a provider and the recorder at `fetch`, as `runspan/register` does. */
function recording(...given: Parameters<typeof setUp>) {
  const all = setUp(...given);
  onTestFinished(recordFetch());
  return all;
}

const nativeClient = (provider: BasicTracerProvider, traces: object = {}, options: object = {}) =>
  makeClient(model(), { openTelemetry: { tracerProvider: provider, traces }, ...options });

const metadataOf = (run: RunRecord | undefined) => run?.extra?.metadata ?? {};
const tokensOf = ({ runs }: RunRecorder) =>
  runs.flatMap((run) => (metadataOf(run).usage_metadata as { total_tokens?: number })?.total_tokens ?? []);
const answerOf = (run: RunRecord | undefined) => {
  const [block] = (run?.outputs?.content ?? []) as { text?: string }[];
  return block?.text;
};

const calls: [string, (client: Anthropic) => Promise<unknown>, boolean][] = [
  ['messages.create', (client) => client.messages.create(question), false],
  ['messages.stream', (client) => client.messages.stream(question).finalMessage(), true],
  [
    'messages.create with `stream`',
    async (client) => {
      for await (const _ of await client.messages.create({ ...question, stream: true }));
    },
    true,
  ],
];

describe.each(calls)(
  "%s of Anthropic's client with a tracer provider and the recorder at `fetch`",
  (_, call, isStream) => {
    test.each<[string, object, (client: Anthropic) => Anthropic, string[]]>([
      ['is one run with content, which the span lacks by default', {}, (client) => client, [SDK, 'fetch']],
      ['is one run if the span has content', { contentMode: 'content' }, (client) => client, [SDK, 'fetch']],
      ['is one run without spans', { enabled: false }, (client) => client, ['fetch']],
      ['is one run of a wrapped client', {}, (client) => wrapAnthropic(client), ['wrapAnthropic']],
    ])('%s', async (_title, traces, wrapped, recordedBy) => {
      const { tracer, provider, recorder } = recording();
      await inSpan(tracer, 'answer', () => call(wrapped(nativeClient(provider, traces))));
      const [, run, ...others] = recorder.runs.sort((a, b) => (a.dotted_order < b.dotted_order ? -1 : 1));
      expect(others).toEqual([]);
      expect(run).toMatchObject({ run_type: 'llm', inputs });
      expect(JSON.stringify(run?.outputs)).toContain('You said: Is it raining?');
      expect(metadataOf(run)).toMatchObject({
        recorded_by: recordedBy,
        response_id: 'msg_3',
        ls_model_name: 'small',
        usage_metadata: { input_tokens: 3, output_tokens: 5, total_tokens: 8 },
      });
      expect(run?.outputs?.usage_metadata).toEqual(metadataOf(run).usage_metadata);
      expect(run?.events?.map(({ name }) => name) ?? []).toEqual(isStream ? ['new_token'] : []);
      expect(run?.error).toBeUndefined();
    });
  },
);

describe('content that the user has turned off', () => {
  test.each([
    ['ANTHROPIC_OPEN_TELEMETRY_TRACES_CONTENT_MODE', 'metadata_only', SDK],
    ['OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT', 'false', SDK],
    ['OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT', 'NO_CONTENT', SDK],
  ])('by %s=%s is not recorded, but tokens are', async (name, value, source) => {
    vi.stubEnv(name, value);
    const { provider, recorder } = recording();
    await nativeClient(provider).messages.create(question);
    const [run, ...others] = recorder.runs;
    expect(others).toEqual([]);
    expect(run?.inputs ?? {}).toEqual({});
    expect(JSON.stringify(run)).not.toContain('raining');
    expect(metadataOf(run)).toMatchObject({ recorded_by: [source, 'fetch'], usage_metadata: { total_tokens: 8 } });
  });

  test.each(['ai', 'gen_ai', '@traceloop/instrumentation-openai', '@arizeai/openinference-instrumentation-openai'])(
    'in the settings of %s, which records content by default, is not recorded',
    async (scope) => {
      const { provider, recorder } = recording();
      await called(provider.getTracer(scope), {}, () => plainClient().messages.create(question));
      expect(JSON.stringify(recorder.runs)).not.toContain('raining');
      expect(tokensOf(recorder)).toEqual([8]);
    },
  );

  test("of the AI SDK's telemetry, which records content by default, is not recorded with a tracer of the application", async () => {
    const { provider, recorder } = recording();
    const attributes = { 'ai.operationId': 'ai.generateText.doGenerate' };
    await called(provider.getTracer('app'), attributes, () => plainClient().messages.create(question));
    expect(JSON.stringify(recorder.runs)).not.toContain('raining');
  });

  test('by a wrong option of the processor is not recorded', async () => {
    const processors = [new RunSpanProcessor({ hideInputs: true, shouldExport: 'all' } as object)];
    const { provider, recorder } = recording({ processors });
    await nativeClient(provider).messages.create(question);
    expect(recorder.runs).toMatchObject([{ inputs: {}, outputs: { role: 'assistant' } }]);
  });
});

const plainClient = () => makeClient(model(), { openTelemetry: false });
const chat = { 'gen_ai.operation.name': 'chat', 'gen_ai.request.model': 'small' };

/** Calls `fn` in a span of a model call, which ends when the result of `fn` settles. */
async function called(tracer: Tracer, attributes: Attributes, fn: (span: Span) => Promise<unknown>): Promise<void> {
  await tracer.startActiveSpan('chat small', { attributes: { ...chat, ...attributes } }, async (span) => {
    try {
      await fn(span);
    } catch (error) {
      span.recordException(error as Error);
      span.setStatus({ code: SpanStatusCode.ERROR, message: (error as Error).message });
    } finally {
      span.end();
    }
  });
}

describe('several requests inside a span of a model call', () => {
  const retrying = () => makeClient(model(), { openTelemetry: false, maxRetries: 1 });

  test('are attempts, whose error does not count if the call succeeds', async () => {
    const { tracer, recorder } = recording();
    await called(tracer, {}, () => retrying().messages.create({ ...question, model: 'fail-500-once' }));
    const [run, ...others] = recorder.runs;
    expect(others).toEqual([]);
    expect(run).toMatchObject({ name: 'chat small', inputs });
    expect(run?.error).toBeUndefined();
    expect(answerOf(run)).toBe('You said: Is it raining?');
    expect(tokensOf(recorder)).toEqual([8]);
  });

  test('are attempts, and the most detailed error is recorded if the call fails', async () => {
    const { tracer, recorder } = recording();
    await called(tracer, {}, async () => {
      await retrying()
        .messages.create({ ...question, model: 'fail-400' })
        .catch(() => {
          throw new Error('no');
        });
    });
    expect(recorder.runs).toHaveLength(1);
    expect(recorder.runs[0]?.error).toContain('400');
  });

  test('add up their tokens if the span has none, and do not count if it has some', async () => {
    const twice = async () => {
      await plainClient().messages.create(question);
      await plainClient().messages.create(question);
    };
    const { tracer, recorder } = recording();
    await called(tracer, {}, twice);
    await called(tracer, { 'gen_ai.usage.input_tokens': 6, 'gen_ai.usage.output_tokens': 1 }, twice);
    expect(recorder.runs).toHaveLength(2);
    expect(tokensOf(recorder)).toEqual([16, 7]);
    expect(recorder.runs[0]?.outputs?.usage_metadata).toMatchObject({ input_tokens: 6, output_tokens: 10 });
  });
});

describe('a span that ends before the body of its response', () => {
  const streamed = { ...question, stream: true } as const;

  test('has an open run until the body ends', async () => {
    const { tracer, recorder } = recording();
    let stream: AsyncIterable<unknown> | undefined;
    await called(tracer, {}, async () => {
      stream = await plainClient().messages.create(streamed);
    });
    expect(recorder.runs.map(({ end_time }) => end_time)).toEqual([undefined]);
    for await (const _ of stream ?? []);
    const [run] = recorder.runs;
    expect(answerOf(run)).toBe('You said: Is it raining?');
    expect(run?.end_time ?? '').not.toBe('');
    expect(run?.events?.map(({ name }) => name)).toEqual(['new_token']);
    expect((run?.end_time ?? '') >= `${run?.events?.[0]?.time}`).toBe(true);
  });

  test('has a run that ends as cancelled when the application stops reading', async () => {
    const { tracer, recorder } = recording();
    await called(tracer, {}, async () => {
      const stream = await plainClient().messages.create(streamed);
      setImmediate(async () => {
        for await (const event of stream) if (event.type === 'content_block_delta') break;
      });
    });
    await vi.waitFor(() => expect(recorder.runs[0]?.end_time).toBeDefined());
    expect(metadataOf(recorder.runs[0])).toMatchObject({ end_reason: 'cancelled' });
  });

  test('has a run with the error of the body', async () => {
    const { tracer, recorder } = recording();
    let stream: AsyncIterable<unknown> | undefined;
    await called(tracer, {}, async () => {
      stream = await plainClient().messages.create({ ...streamed, model: 'fail-mid-stream' });
    });
    await expect(async () => {
      for await (const _ of stream ?? []);
    }).rejects.toThrow();
    expect(recorder.runs[0]?.error).toBeDefined();
  });

  test('has a run with the error of the last body, even if an earlier request succeeded', async () => {
    const { tracer, recorder } = recording();
    let stream: AsyncIterable<unknown> | undefined;
    await called(tracer, {}, async () => {
      await plainClient().messages.create(question);
      stream = await plainClient().messages.create({ ...streamed, model: 'fail-mid-stream' });
    });
    await expect(async () => {
      for await (const _ of stream ?? []);
    }).rejects.toThrow();
    expect(recorder.runs).toMatchObject([{ error: expect.stringContaining('overloaded_error') }]);
  });

  test('has a run that ends after `streamIdleMs` if the request gets no response', async () => {
    const { tracer, asked } = noting({ streamIdleMs: 20 });
    onTestFinished(recordFetch());
    const left = new AbortController();
    onTestFinished(() => left.abort());
    await called(tracer, {}, async () => {
      plainClient()
        .messages.create({ ...question, model: 'hang' }, { signal: left.signal })
        .catch(() => {});
      await vi.waitFor(() => expect(model().requests.at(-1)?.body.model).toBe('hang'));
    });
    expect(asked).toEqual(['start chat small']);
    await vi.waitFor(() => expect(asked).toEqual(['start chat small', 'end chat small']));
  });

  test('has a run that ends when the process is about to end', async () => {
    const { tracer, recorder } = recording();
    await called(tracer, {}, () => plainClient().messages.create(streamed));
    expect(recorder.runs[0]?.end_time).toBeUndefined();
    process.emit('beforeExit', 0);
    expect(recorder.runs).toMatchObject([{ name: 'chat small', inputs, end_time: expect.any(String) }]);
  });

  test('is delivered with what is known when the provider is shut down', async () => {
    const { tracer, provider, recorder } = recording();
    await called(tracer, {}, () => plainClient().messages.create(streamed));
    await provider.shutdown();
    expect(recorder.runs).toMatchObject([{ name: 'chat small', inputs, end_time: expect.any(String) }]);
  });
});

test('is delivered when the provider is shut down, even after many later spans', async () => {
  const { tracer, provider, recorder } = recording();
  await called(tracer, {}, () => plainClient().messages.create({ ...question, stream: true }));
  for (let count = 0; count < 300; count++) tracer.startSpan('later').end();
  await provider.shutdown();
  const [run] = recorder.runs.filter(({ run_type }) => run_type === 'llm');
  expect(run).toMatchObject({ inputs, end_time: expect.any(String) });
});

describe('the run of a span that its instrumentation never ends', () => {
  const endings: [string, (provider: BasicTracerProvider) => unknown][] = [
    ['when the process is about to end', () => process.emit('beforeExit', 0)],
    ['when the provider is shut down', (provider) => provider.shutdown()],
  ];

  test.each(endings)('ends %s with the error of the request', async (_, end) => {
    const { tracer, provider, recorder } = recording();
    const client = makeClient(model(), { openTelemetry: false, maxRetries: 0 });
    const failed = tracer.startActiveSpan('chat small', { attributes: chat }, () =>
      client.messages.create({ ...question, model: 'fail-400' }).catch((error: Error) => error.constructor.name),
    );
    expect(await failed).toBe('BadRequestError');
    expect(recorder.runs).toMatchObject([{ name: 'chat small' }]);
    expect(recorder.runs[0]?.end_time).toBeUndefined();
    await end(provider);
    expect(recorder.runs).toMatchObject([
      { inputs, error: expect.stringContaining('400'), end_time: expect.any(String) },
    ]);
    expect(metadataOf(recorder.runs[0]).end_reason).toBeUndefined();
  });

  test.each(endings)('ends %s with the answer', async (_, end) => {
    const { tracer, provider, recorder } = recording();
    await tracer.startActiveSpan('chat small', { attributes: chat }, () => plainClient().messages.create(question));
    await end(provider);
    expect(recorder.runs).toMatchObject([{ inputs, outputs: { role: 'assistant' }, end_time: expect.any(String) }]);
    expect(metadataOf(recorder.runs[0]).end_reason).toBeUndefined();
  });

  test.each(endings)('ends %s, even inside a span of another instrumentation', async (_, end) => {
    const { tracer, provider, recorder } = recording();
    await tracer.startActiveSpan('chat small', { attributes: chat }, () =>
      provider
        .getTracer('inner')
        .startActiveSpan('inner', { attributes: chat }, () => plainClient().messages.create(question)),
    );
    await end(provider);
    expect(recorder.runs).toMatchObject([{ name: 'chat small', inputs, outputs: { role: 'assistant' } }]);
    expect(metadataOf(recorder.runs[0])).toMatchObject({ recorded_by: ['test', 'inner', 'fetch'] });
  });

  test('ends after `streamIdleMs`, and a later retry has no content if the user has turned off content', async () => {
    const { tracer, asked, runs } = noting({ streamIdleMs: 5 });
    onTestFinished(recordFetch());
    const attributes = { ...chat, 'openinference.span.kind': 'LLM' };
    await tracer.startActiveSpan('chat small', { attributes }, async () => {
      await plainClient().messages.create(question);
      await vi.waitFor(() => expect(asked).toEqual(['start chat small', 'end chat small']));
      await plainClient().messages.create(question);
    });
    expect(asked).toHaveLength(2);
    expect(JSON.stringify(runs.map((run) => [run.inputs, run.outputs, run.endTime]))).not.toContain('raining');
  });
});

test("a client's timeout is a failure, although the client aborts its request", async () => {
  const { tracer, recorder } = recording();
  const client = makeClient(model(), { openTelemetry: false, timeout: 20, maxRetries: 0 });
  await called(tracer, {}, () => client.messages.create({ ...question, model: 'hang' }));
  expect(recorder.runs).toMatchObject([{ error: expect.stringContaining('Request timed out.') }]);
  expect(metadataOf(recorder.runs[0]).end_reason).toBeUndefined();
});

test('a span inside a span of another instrumentation completes the run of the outer span', async () => {
  const { tracer, provider, recorder } = recording();
  const content = {
    'gen_ai.prompt.0.role': 'user',
    'gen_ai.prompt.0.content': 'Hi',
    'gen_ai.completion.0.content': 'Yo',
  };
  await called(tracer, {}, async () => {
    await called(provider.getTracer('inner'), { ...content, 'gen_ai.usage.input_tokens': 3 }, soon);
  });
  expect(recorder.runs).toMatchObject([{ name: 'chat small', inputs: { messages: [{ content: 'Hi' }] } }]);
  expect(metadataOf(recorder.runs[0]).recorded_by).toEqual(['test', 'inner']);
  expect(tokensOf(recorder)).toEqual([3]);
});

describe('a span that is not active during the request', () => {
  /** Starts a span as `startObservation` of Langfuse does, and never makes it active. */
  function observed(provider: BasicTracerProvider, content: string, attributes: Attributes = {}): Span {
    const input = JSON.stringify({ messages: [{ role: 'user', content }] });
    const own = {
      'langfuse.observation.type': 'generation',
      'langfuse.observation.input': input,
      'langfuse.observation.model.name': 'small',
    };
    return provider.getTracer('langfuse-sdk').startSpan('OpenAI.chat', { attributes: { ...own, ...attributes } });
  }
  const observedCall = async (provider: BasicTracerProvider, content: string): Promise<void> => {
    const span = observed(provider, content);
    await plainClient().messages.create(ask(content));
    span.setAttribute('langfuse.observation.output', JSON.stringify({ content: `${content}!` })).end();
  };

  test.each<[string, string[]]>([
    ['records its call once', ['Hi']],
    ['records two parallel calls with different requests', ['Hi', 'Bye']],
    ['records two parallel calls with equal requests', ['Hi', 'Hi']],
  ])('%s', async (_, contents) => {
    const { tracer, provider, recorder } = recording();
    await inSpan(tracer, 'answer', () => Promise.all(contents.map((content) => observedCall(provider, content))));
    expect(tree(recorder)).toEqual(['answer', ...contents.map(() => '  OpenAI.chat')]);
    const runs = recorder.runs.filter(({ run_type }) => run_type === 'llm');
    for (const { inputs: given, outputs } of runs) {
      const [message] = (given as { messages: { content: string }[] }).messages;
      expect(outputs).toMatchObject({ content: `${message?.content}!` });
    }
    expect(tokensOf(recorder)).toHaveLength(contents.length);
  });

  test.each<[string, string, Attributes]>([
    ['another request', 'Bye', {}],
    ['another type', 'Hi', { 'langfuse.observation.type': 'embedding' }],
  ])('does not record a parallel call with %s', async (_, content, attributes) => {
    const { tracer, provider, recorder } = recording();
    await inSpan(tracer, 'answer', async () => {
      const span = observed(provider, content, attributes);
      await plainClient().messages.create(ask('Hi'));
      span.end();
    });
    expect(tree(recorder)).toEqual(['answer', '  OpenAI.chat', '  anthropic.messages']);
  });

  test('does not record the call of the next span, although it never ends', async () => {
    const { tracer, provider, recorder } = recording();
    await inSpan(tracer, 'answer', async () => {
      observed(provider, 'Hi');
      const client = makeClient(model(), { openTelemetry: false, maxRetries: 0 });
      await client.messages.create({ ...ask('Hi'), model: 'fail-400' }).catch(() => {});
      await observedCall(provider, 'Hi');
    });
    await provider.shutdown();
    const [failed, answered] = recorder.runs.filter(({ run_type }) => run_type === 'llm');
    expect(failed?.error).toContain('400');
    expect(answered?.error).toBeUndefined();
    expect(tokensOf(recorder)).toHaveLength(1);
  });

  test('does not record an equal call of another user', async () => {
    const { provider, recorder } = recording();
    const span = withContext({ userId: 'alice' }, () => observed(provider, 'Hi'));
    await withContext({ userId: 'bob' }, () => plainClient().messages.create(ask('Hi')));
    span.end();
    expect(recorder.runs.map((run) => metadataOf(run).user_id).sort()).toEqual(['alice', 'bob']);
  });

  test('does not record an equal call after it, or of another trace while two are open', async () => {
    const { provider, recorder } = recording();
    observed(provider, 'Hi').end();
    await plainClient().messages.create(ask('Hi'));
    expect(tree(recorder)).toEqual(['OpenAI.chat', 'anthropic.messages']);
    const spans = [observed(provider, 'Hi'), observed(provider, 'Hi')];
    await plainClient().messages.create(ask('Hi'));
    for (const span of spans) span.end();
    expect(tree(recorder).filter((name) => name === 'anthropic.messages')).toHaveLength(2);
  });
});

test.each([5, null, true, { a: 1 }, 'me', [7]])(
  'metadata with %j as `recorded_by` does not disturb the application',
  async (given) => {
    const { tracer, recorder } = recording();
    const client = wrapAnthropic(plainClient(), { metadata: { recorded_by: given } });
    const answer = await tracer.startActiveSpan('chat small', { attributes: chat }, async (span) => {
      const message = await client.messages.create(question);
      span.end();
      return message;
    });
    expect(answer).toMatchObject({ role: 'assistant' });
    expect(recorder.runs).toMatchObject([{ inputs, outputs: { role: 'assistant' }, end_time: expect.any(String) }]);
  },
);

test('each of 200 parallel agents that two sources record keeps its own call', async () => {
  const { tracer, provider, recorder } = recording();
  const [kinds] = fc.sample(
    fc.array(fc.constantFrom('inside', 'beside', 'alone'), { minLength: 200, maxLength: 200 }),
    1,
  );
  const agent = async (kind: string | undefined, at: number): Promise<void> => {
    await soon();
    const content = `question ${at}`;
    const request = () => plainClient().messages.create(ask(content));
    if (kind === 'inside') return called(provider.getTracer(SDK), {}, request);
    const input = JSON.stringify([{ role: 'user', content }]);
    const attributes = { 'langfuse.observation.type': 'generation', 'langfuse.observation.input': input };
    const span = kind === 'beside' ? provider.getTracer('langfuse-sdk').startSpan('call', { attributes }) : undefined;
    await request();
    span?.end();
  };
  await inSpan(tracer, 'all', () =>
    Promise.all((kinds ?? []).map((kind, at) => inSpan(tracer, `agent ${at}`, () => agent(kind, at)))),
  );
  const agents = new Map(
    recorder.runs.flatMap(({ id, name }) => (name.startsWith('agent') ? [[id, name] as const] : [])),
  );
  const found = recorder.runs.filter(({ run_type }) => run_type === 'llm');
  expect(found).toHaveLength(200);
  for (const run of found) {
    const number = agents.get(run.parent_run_id ?? '')?.slice('agent '.length);
    expect(JSON.stringify(run.inputs)).toContain(`"question ${number}"`);
    const said = answerOf(run);
    if (said !== undefined) expect(said).toBe(`You said: question ${number}`);
  }
  expect(new Set(found.map(({ parent_run_id }) => parent_run_id)).size).toBe(200);
  expect(tokensOf(recorder)).toHaveLength(200);
});
