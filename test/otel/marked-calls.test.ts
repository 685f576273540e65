// Spans and runs of wrapped functions, methods, clients, models and LangChain in one trace. Each records a run. If two runs
// record one call, the one that ends later names the other. Attributes:
// https://github.com/open-telemetry/semantic-conventions-genai/blob/main/docs/gen-ai/gen-ai-spans.md
// test/otel/call-nests.test.ts generates nests. The tests with real instrumentations are in
// test/peers/otel-instrumentations.test.ts.
import { AsyncResource } from 'node:async_hooks';
import '@langchain/core/context';
import type Anthropic from '@anthropic-ai/sdk';
import { RunnableLambda } from '@langchain/core/runnables';
import { FakeListChatModel } from '@langchain/core/utils/testing';
import type { Attributes, Tracer } from '@opentelemetry/api';
import type { BasicTracerProvider } from '@opentelemetry/sdk-trace-base';
import * as ai from 'ai';
import { MockEmbeddingModelV3, MockLanguageModelV3 } from 'ai/test';
import type OpenAI from 'openai';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { wrapAISDK, wrapModel } from '#src/ai.ts';
import { wrapAnthropic } from '#src/anthropic.ts';
import { traceable, traced, withTrace } from '#src/index.ts';
import { recordFetch } from '#src/integrations/fetch/record-fetch.ts';
import { RunspanCallbackHandler } from '#src/langchain.ts';
import { wrapOpenAI } from '#src/openai.ts';
import { RunSpanProcessor } from '#src/otel.ts';
import { type EncodedRun, wholeJson } from '#src/run/encoded-run.ts';
import type { RunRecord } from '#src/run/record.ts';
import { type RunRecorder, recordRuns } from '#src/testing.ts';
import { bareClient, localModel, sharedModel, tea } from '../integrations/local-openai.ts';
import { ask, makeClient } from '../integrations/sdks.ts';
import { below, inSpan, lightInto, noting, setUp, soon, tree } from './set-up.ts';

const callbacks = [new RunspanCallbackHandler()];
const asked = { model: 'small', messages: tea };
const chat = { 'gen_ai.operation.name': 'chat', 'gen_ai.request.model': 'small' };
const withText = (content: string) => ({
  ...chat,
  'gen_ai.input.messages': JSON.stringify([{ role: 'user', content }]),
});
const openai = async () => bareClient(await localModel());

/** Instruments a client: each call becomes a span, with a span of its request below. */
function instrument(tracer: Tracer, client: OpenAI, attributes: Attributes, late: Attributes = {}): OpenAI {
  const { completions } = client.chat;
  const create = completions.create as (...args: unknown[]) => PromiseLike<unknown>;
  completions.create = ((...args: unknown[]) =>
    tracer.startActiveSpan('chat small', { attributes }, (span) => {
      span.setAttributes(late);
      tracer.startSpan('POST').end();
      const answer = Reflect.apply(create, completions, args) as PromiseLike<unknown>;
      const end = () => span.setAttributes({ 'gen_ai.usage.input_tokens': 3, 'gen_ai.usage.output_tokens': 4 }).end();
      answer.then(end, end);
      return answer;
    })) as never;
  return client;
}

const tokensOf = ({ runs }: RunRecorder) =>
  runs.flatMap(({ extra }) => (extra?.metadata?.usage_metadata as { input_tokens?: number })?.input_tokens ?? []);

/** Returns the names of the runs that record one call, in alphabetical order. */
function pairsOf({ runs }: RunRecorder): string[][] {
  const names = new Map(runs.map(({ id, name }) => [id, name]));
  return runs.flatMap(({ name, extra }) => {
    const other = extra?.metadata?.same_call as string | undefined;
    return other === undefined ? [] : [[name, names.get(other) ?? '?'].sort()];
  });
}

describe('spans, methods, LangChain steps and clients', () => {
  class Shop {
    readonly #tracer: Tracer;

    constructor(tracer: Tracer) {
      this.#tracer = tracer;
    }

    @traced
    async answer(client: OpenAI): Promise<void> {
      await soon();
      await inSpan(this.#tracer, 'span', async () => {
        await RunnableLambda.from(async () => {
          await inSpan(this.#tracer, 'inner span', () => client.chat.completions.create(asked));
        }).invoke({}, { callbacks, runName: 'step' });
        await this.rest();
      });
    }

    @traced({ name: 'rest' })
    async rest(): Promise<void> {
      this.#tracer.startSpan('last span').end();
    }
  }

  test.each([
    [
      'are nested with a context manager',
      true,
      ['request', ' answer', '  span', '   rest', '    last span', '   step', '    inner span', '     openai'],
    ],
    [
      'have no run below a span without a context manager',
      false,
      ['answer', ' rest', '  last span', ' span', ' step', '  inner span', '  openai', 'request'],
    ],
  ])('%s', async (_, contextManager, expected) => {
    const { tracer, recorder } = setUp({ contextManager });
    const client = wrapOpenAI(await openai());
    await inSpan(tracer, 'request', () => new Shop(tracer).answer(client));
    const lines = tree(recorder).map((line) => line.replaceAll('  ', ' ').replace('.chat.completions', ''));
    expect(lines).toEqual(expected);
  });
});

describe('a model call of a wrapped client with an instrumentation', () => {
  const TREE = ['openai.chat.completions', '  chat small', '    POST'];

  test.each<[string, Attributes, Attributes]>([
    ['with the text of the call', withText('What is tea?'), {}],
    ['with the text of the call, which it gets after its start', {}, withText('What is tea?')],
    ['that names another provider', { ...withText('What is tea?'), 'gen_ai.request.model': 'local/small' }, {}],
  ])('is one call with a span %s', async (_, attributes, late) => {
    const { tracer, recorder } = setUp();
    await wrapOpenAI(instrument(tracer, await openai(), attributes, late)).chat.completions.create(asked);
    expect(tree(recorder)).toEqual(TREE);
    expect(pairsOf(recorder)).toEqual([['chat small', 'openai.chat.completions']]);
    expect(tokensOf(recorder)).toEqual([3]);
  });

  test.each<[string, Attributes, number[]]>([
    ['without a text or an id', chat, [3, 3]],
    ['with another text', withText('What is coffee?'), [3, 3]],
    ['with another model', { ...withText('What is tea?'), 'gen_ai.request.model': 'large' }, [3, 3]],
    ['of an embedding', { ...withText('What is tea?'), 'gen_ai.operation.name': 'embeddings' }, [3, 3]],
    ['of an agent', { ...withText('What is tea?'), 'gen_ai.operation.name': 'invoke_agent' }, [3]],
    ['without attributes', {}, [3]],
  ])('is another call than a span %s', async (_, attributes, tokens) => {
    const { tracer, recorder } = setUp();
    await wrapOpenAI(instrument(tracer, await openai(), attributes)).chat.completions.create(asked);
    expect(tree(recorder)).toEqual(TREE);
    expect(pairsOf(recorder)).toEqual([]);
    expect(tokensOf(recorder)).toEqual(tokens);
  });

  test('is one call with a function of the application, which keeps its outputs', async () => {
    const { tracer, recorder } = setUp();
    const client = instrument(tracer, await openai(), withText('What is tea?'));
    const usage_metadata = { input_tokens: 3, output_tokens: 4, total_tokens: 7 };
    const call = async () => ({ ...(await client.chat.completions.create(asked)), usage_metadata });
    await traceable(call, { name: 'call', runType: 'llm', inputs: () => ({ messages: tea }) })();
    expect(tree(recorder)).toEqual(['call', '  chat small', '    POST']);
    expect(pairsOf(recorder)).toEqual([['call', 'chat small']]);
    expect(recorder.run('call').outputs).toMatchObject({ usage_metadata });
  });

  test('is another call than that of a guard with the same text in its `fetch`, and than one that names another model', async () => {
    const { recorder } = setUp();
    onTestFinished(recordFetch());
    const guarded: typeof fetch = async (url, init) => {
      await (await fetch(url, { ...init, body: JSON.stringify({ ...asked, model: 'guard' }) })).json();
      return fetch(url, init);
    };
    const client = wrapOpenAI(bareClient(await localModel(), { fetch: guarded }));
    const own = { name: 'own', runType: 'llm', metadata: { ls_model_name: 'own' }, inputs: () => asked } as const;
    await traceable(() => client.chat.completions.create(asked), own)();
    expect(tree(recorder)).toEqual(['own', '  openai.chat.completions', '    openai.chat.completions']);
    expect([pairsOf(recorder), tokensOf(recorder)]).toEqual([[], [3, 3]]);
  });

  test('is another call than an equal one of another client, if the service gives no ids', async () => {
    const { recorder } = setUp();
    const create = async (_: object) => ({ choices: [], usage: { prompt_tokens: 3 } });
    const clients = [1, 2].map(() => wrapOpenAI({ chat: { completions: { create } } }));
    await traceable(() => Promise.all(clients.map(({ chat: { completions } }) => completions.create(asked))))();
    expect([pairsOf(recorder), tokensOf(recorder)]).toEqual([[], [3, 3]]);
  });

  test('is compared for each exporter, and recorded once in each', async () => {
    const own = recordRuns();
    own.stop();
    const ofOwn = new RunSpanProcessor({ exporter: own.exporter, shouldExport: 'all' });
    const { tracer, recorder } = setUp({
      processors: [new RunSpanProcessor({ shouldExport: 'all' }), new RunSpanProcessor({ shouldExport: 'all' }), ofOwn],
    });
    const client = instrument(tracer, await openai(), withText('What is tea?'));
    await wrapOpenAI(client).chat.completions.create(asked);
    expect(tree(recorder)).toEqual(TREE);
    expect(own.runs.map(({ name }) => name)).toEqual(['chat small', 'POST']);
    expect([tokensOf(recorder), tokensOf(own), pairsOf(own)]).toEqual([[3], [3], []]);
  });

  test('is separate from a call inside its ended span or run', async () => {
    const { tracer, recorder } = setUp();
    const wrapped = wrapOpenAI(await openai());
    await tracer.startActiveSpan('chat small', { attributes: withText('What is tea?') }, async (span) => {
      span.end();
      await wrapped.chat.completions.create(asked);
    });
    expect(tree(recorder)).toEqual(['chat small', '  openai.chat.completions']);
    expect(pairsOf(recorder)).toEqual([]);
    recorder.stop();

    const other = setUp();
    let next = () => {};
    const client = bareClient(await localModel(), {
      fetch: (...request) => {
        next = AsyncResource.bind(() =>
          other.tracer.startSpan('chat small', { attributes: withText('What is tea?') }).end(),
        );
        return fetch(...request);
      },
    });
    await wrapOpenAI(client).chat.completions.create(asked);
    next();
    expect(tree(other.recorder)).toEqual(['openai.chat.completions', '  chat small']);
    expect(pairsOf(other.recorder)).toEqual([]);
  });
});

describe("Anthropic's client, which emits spans", () => {
  const model = sharedModel();
  /** Has three tokens. */
  const question = ask('Is it raining?');
  const clientOf = (provider: BasicTracerProvider, options: object = {}) =>
    makeClient(model(), { openTelemetry: { tracerProvider: provider }, ...options });
  const plainClient = (options: object = {}) => makeClient(model(), { openTelemetry: false, ...options });
  const PAIR = ['anthropic.messages', 'anthropic.messages.create'];

  test.each<[string, (client: Anthropic) => Promise<unknown>]>([
    ['messages.create', (client) => client.messages.create(question)],
    ['messages.stream', (client) => client.messages.stream(question).finalMessage()],
    ['beta.messages.stream', (client) => client.beta.messages.stream(question).finalMessage()],
    [
      'a tool runner that streams',
      async (client) => {
        const turns = client.beta.messages.toolRunner({ ...question, tools: [], stream: true });
        for await (const stream of turns) await stream.finalMessage();
      },
    ],
  ])('is one call of %s with its wrapper, and one with `fetch`', async (_, call) => {
    const { tracer, provider, recorder } = setUp({
      processors: [new RunSpanProcessor({ shouldExport: 'all' }), new RunSpanProcessor({ shouldExport: 'all' })],
    });
    await inSpan(tracer, 'answer', () => call(wrapAnthropic(clientOf(provider))));
    expect(pairsOf(recorder)).toEqual([PAIR]);
    expect(tokensOf(recorder)).toEqual([3]);
    recorder.clear();
    onTestFinished(recordFetch());
    await call(clientOf(provider));
    expect(pairsOf(recorder)).toEqual([PAIR]);
    expect(tokensOf(recorder)).toEqual([3]);
    expect(JSON.stringify(recorder.runs)).toContain('You said: Is it raining?');
  });

  test.each([
    ['hides only the inputs', 'OPENINFERENCE_HIDE_INPUTS', [true, false]],
    ['hides only the outputs', 'OPENINFERENCE_HIDE_OUTPUTS', [false, true]],
    ['hides nothing', undefined, [false, false]],
  ])('inside a span of OpenInference %s with %s', async (_, name, hidden) => {
    if (name !== undefined) vi.stubEnv(name, 'true');
    const { provider, recorder } = setUp();
    onTestFinished(recordFetch());
    const attributes = { 'openinference.span.kind': 'LLM', 'llm.model_name': 'small' };
    const tracer = provider.getTracer('@arizeai/openinference-instrumentation-anthropic');
    await tracer.startActiveSpan('Anthropic Messages', { attributes }, async (span) => {
      await plainClient().messages.create(question);
      span.end();
    });
    const { inputs, outputs } = recorder.run('anthropic.messages');
    expect([inputs, outputs].map((payload) => !JSON.stringify(payload).includes('raining'))).toEqual(hidden);
  });

  test('is hidden inside a span that gets the attributes of a refused source later, also in a trace of its own', async () => {
    vi.stubEnv('OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT', 'false');
    const { tracer, recorder } = setUp();
    onTestFinished(recordFetch());
    await inSpan(tracer, 'chat', async (span) => {
      span.setAttributes(chat);
      await plainClient().messages.create(question);
      await withTrace('own trace', () => plainClient().messages.create(question));
    });
    expect(recorder.runs.map(({ name }) => name).sort()).toEqual([
      ...['anthropic.messages', 'anthropic.messages', 'chat', 'own trace'],
    ]);
    expect(JSON.stringify(recorder.runs.filter(({ name }) => name !== 'own trace'))).not.toContain('raining');
  });

  test('has a run for each attempt below a span, and the one that succeeds is the call of the span', async () => {
    const { tracer, recorder } = setUp();
    onTestFinished(recordFetch());
    await tracer.startActiveSpan('chat', { attributes: withText('Is it raining?') }, async (span) => {
      await plainClient({ maxRetries: 1 }).messages.create({ ...question, model: 'fail-500-once' });
      span.setAttributes({ 'gen_ai.request.model': 'fail-500-once', 'gen_ai.usage.input_tokens': 3 }).end();
    });
    expect(tree(recorder)).toEqual(['chat', '  anthropic.messages', '  anthropic.messages']);
    expect(recorder.runs.map(({ error }) => error?.slice(0, 8))).toEqual([undefined, 'HTTP 500', undefined]);
    const [span, , answered] = recorder.runs;
    expect(span?.extra?.metadata?.same_call).toBe(answered?.id);
    expect(tokensOf(recorder)).toEqual([3]);
  });

  test.each<[string, (provider: BasicTracerProvider) => unknown]>([
    ['when the process is about to end', () => process.emit('beforeExit', 0)],
    ['when the provider is shut down', (provider) => provider.shutdown()],
  ])('is recorded %s inside a span that never ends, which is interrupted', async (_, end) => {
    const { tracer, provider, recorder } = setUp();
    onTestFinished(recordFetch());
    await tracer.startActiveSpan('chat', { attributes: chat }, () => plainClient().messages.create(question));
    expect(recorder.run('chat').end_time).toBeUndefined();
    await end(provider);
    expect(recorder.run('chat')).toMatchObject({ extra: { runspan_end_reason: 'interrupted' } });
    expect(recorder.run('anthropic.messages').error).toBeUndefined();
  });

  test('ends a span that never ends after `streamIdleMs`, unless another call is open inside', async () => {
    const { tracer, asked: calls } = noting({ streamIdleMs: 5 });
    const llm = traceable(soon, { name: 'call', runType: 'llm' });
    await tracer.startActiveSpan('chat', { attributes: chat }, () => llm());
    let end = () => {};
    const waiting = traceable(() => new Promise<void>((resolve) => (end = resolve)), { name: 'long', runType: 'llm' });
    const busy = tracer.startActiveSpan('busy', { attributes: chat }, () => Promise.all([llm(), waiting()]));
    await expect.poll(() => calls).toContain('end chat');
    expect(calls).not.toContain('end busy');
    end();
    await busy;
    await expect.poll(() => calls).toContain('end busy');
  });
});

test.each([false, true])(
  'a span is compared with one inside that tells its call only after the first has ended, light %s',
  (isLight) => {
    const recorder = recordRuns();
    recorder.stop();
    const runs: RunRecord[] = [];
    const light = isLight ? lightInto(runs, () => true) : undefined;
    const end = (run: EncodedRun) => void runs.push(JSON.parse(wholeJson(run)));
    const exporter = { ...recorder.exporter, light, start: () => true, end };
    const { provider } = setUp({ processors: [new RunSpanProcessor({ exporter, shouldExport: 'all' })] });
    const outer = provider.getTracer('one').startSpan('outer', { attributes: withText('hi') });
    const inner = provider.getTracer('other').startSpan('inner', {}, below(outer));
    outer.end();
    inner.setAttributes(withText('hi')).end();
    expect(runs.map(({ name, extra }) => [name, extra?.metadata?.same_call])).toEqual([
      ['outer', undefined],
      ['inner', runs[0]?.id],
    ]);
  },
);

test('two spans of one instrumentation are two calls, such as the requests of embedMany', async () => {
  const { tracer, recorder } = setUp();
  const embeddings = { 'gen_ai.operation.name': 'embeddings', 'gen_ai.request.model': 'small' };
  await inSpan(tracer, 'embedMany', async (outer) => {
    outer.setAttributes(embeddings);
    const attributes = { ...embeddings, 'gen_ai.usage.input_tokens': 3 };
    for (const name of ['first', 'second']) tracer.startSpan(name, { attributes }).end();
  });
  expect(tree(recorder)).toEqual(['embedMany', '  first', '  second']);
  expect(tokensOf(recorder)).toEqual([3, 3]);
});

describe('the telemetry of the AI SDK with wrappers', () => {
  const usage = { inputTokens: { total: 20 }, outputTokens: { total: 9 } };
  const doGenerate = async () => ({
    content: [{ type: 'text', text: 'Hello.' }],
    finishReason: { unified: 'stop', raw: undefined },
    usage,
    warnings: [],
  });
  const model = new MockLanguageModelV3({ modelId: 'small', doGenerate: doGenerate as never });
  const doEmbed = async () => ({ embeddings: [[0.5, 0.25]], usage: { tokens: 5 }, warnings: [] });
  const embedding = new MockEmbeddingModelV3({ modelId: 'vectors', doEmbed });

  test.each<[string, (telemetry: object) => Promise<unknown>, string[], number]>([
    [
      'a wrapped model',
      (telemetry) => ai.generateText({ model: wrapModel(model), prompt: 'Hi', ...telemetry }),
      ['ai.generateText', '  ai.generateText.doGenerate', '    small'],
      20,
    ],
    [
      'a wrapped function',
      (telemetry) => wrapAISDK(ai).generateText({ model, prompt: 'Hi', ...telemetry }),
      ['generateText', '  ai.generateText', '    ai.generateText.doGenerate', '      small'],
      20,
    ],
    [
      'a wrapped embedding model',
      (telemetry) => ai.embed({ model: wrapModel(embedding), value: 'Hi', ...telemetry }),
      ['ai.embed', '  ai.embed.doEmbed', '    vectors'],
      5,
    ],
  ])('and %s record one call', async (_, call, expected, tokens) => {
    const { tracer, recorder } = setUp();
    await call({ experimental_telemetry: { isEnabled: true, tracer } });
    expect(tree(recorder)).toEqual(expected);
    expect(pairsOf(recorder)).toEqual([[expected.at(-2)?.trim(), expected.at(-1)?.trim()]]);
    expect(tokensOf(recorder)).toEqual([tokens]);
  });
});

describe('a step of LangChain and the span of the client that it calls', () => {
  /** Creates a LangChain model that makes a call to produce its answer. */
  class Model extends FakeListChatModel {
    readonly #call: () => Promise<unknown>;

    constructor(call: () => Promise<unknown>) {
      super({ responses: ['Hello.'] });
      this.#call = call;
    }

    override async _generate(...args: Parameters<FakeListChatModel['_generate']>) {
      await this.#call();
      return super._generate(...args);
    }
  }

  test.each<[string, RunSpanProcessor, string[]]>([
    [
      'are recorded beside each other',
      new RunSpanProcessor({ shouldExport: 'all' }),
      ['answer', '  chat small', '    POST', '  model'],
    ],
    [
      'are one run if `shouldExport` leaves out the span',
      new RunSpanProcessor({ shouldExport: ({ name }) => name !== 'chat small' }),
      ['answer', '  POST', '  model'],
    ],
  ])('%s', async (_, processor, expected) => {
    const { tracer, recorder } = setUp({ processors: [processor] });
    const call = () =>
      inSpan(tracer, 'chat small', async (span) => {
        span.setAttributes(chat);
        await soon();
        tracer.startSpan('POST').end();
      });
    await inSpan(tracer, 'answer', () => new Model(call).invoke('Hi', { callbacks, runName: 'model' }));
    expect(tree(recorder)).toEqual(expected);
  });
});
