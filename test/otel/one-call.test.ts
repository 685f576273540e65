// Spans and runs of wrapped functions, methods, clients, models and LangChain in one trace. A model call that two
// libraries record becomes one run, and two calls become two runs. Attributes:
// https://github.com/open-telemetry/semantic-conventions-genai/blob/main/docs/gen-ai/gen-ai-spans.md
// The tests with real instrumentations are in test/peers/otel-instrumentations.test.ts.
import { AsyncResource } from 'node:async_hooks';
import '@langchain/core/context';
import { RunnableLambda } from '@langchain/core/runnables';
import { FakeListChatModel } from '@langchain/core/utils/testing';
import type { Attributes, Tracer } from '@opentelemetry/api';
import type { BasicTracerProvider } from '@opentelemetry/sdk-trace-base';
import * as ai from 'ai';
import { MockEmbeddingModelV3, MockLanguageModelV3 } from 'ai/test';
import type OpenAI from 'openai';
import { describe, expect, onTestFinished, test } from 'vitest';
import { wrapAISDK, wrapModel } from '#src/ai.ts';
import { wrapAnthropic } from '#src/anthropic.ts';
import { traceable, traced } from '#src/index.ts';
import { recordFetch } from '#src/integrations/fetch/record-fetch.ts';
import { RunspanCallbackHandler } from '#src/langchain.ts';
import { wrapOpenAI } from '#src/openai.ts';
import { RunSpanProcessor } from '#src/otel.ts';
import { type RunRecorder, recordRuns } from '#src/testing.ts';
import { ask, localModel as localClaude, makeClient } from '../integrations/anthropic-client.ts';
import { bareClient, localModel, tea } from '../integrations/local-openai.ts';
import { gate } from '../support/gate.ts';
import { inSpan, setUp, soon, tree } from './set-up.ts';

const callbacks = [new RunspanCallbackHandler()];
const asked = { model: 'small', messages: tea };
const chat = { 'gen_ai.operation.name': 'chat', 'gen_ai.request.model': 'small' };
const openai = async () => bareClient(await localModel());

/** Instruments a client: each call becomes a span, with a span of its request below. */
function instrument(tracer: Tracer, client: OpenAI, attributes: Attributes = chat, late: Attributes = {}): OpenAI {
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

/** Returns the input tokens of all runs that have any. */
const tokensOf = ({ runs }: RunRecorder) =>
  runs.flatMap(({ outputs }) => (outputs?.usage_metadata as { input_tokens?: number })?.input_tokens || []);

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

describe('a model call with a wrapper and an instrumentation', () => {
  const ONE = ['openai.chat.completions', '  POST'];
  const TWO = ['openai.chat.completions', '  chat small', '    POST'];

  test.each<[string, Attributes, Attributes, string[]]>([
    ['is recorded by the outer wrapper, and the children of the span move up', chat, {}, ONE],
    ['is recorded by the outer wrapper if the span gets its attributes after its start', {}, chat, ONE],
    [
      'is recorded by the outer wrapper if the span names another model',
      { ...chat, 'gen_ai.request.model': 'large' },
      {},
      ONE,
    ],
    ['is recorded by the outer wrapper if the span names no model', { 'gen_ai.operation.name': 'chat' }, {}, ONE],
    ['is separate from an embedding', { ...chat, 'gen_ai.operation.name': 'embeddings' }, {}, TWO],
    ['is separate from an agent', { ...chat, 'gen_ai.operation.name': 'invoke_agent' }, {}, TWO],
    ['is separate from a span without attributes', {}, {}, TWO],
  ])('%s', async (_, attributes, late, expected) => {
    const { tracer, recorder } = setUp();
    await wrapOpenAI(instrument(tracer, await openai(), attributes, late)).chat.completions.create(asked);
    expect(tree(recorder)).toEqual(expected);
    expect(recorder.runs.every(({ end_time }) => end_time !== undefined)).toBe(true);
    if (expected === ONE) expect(tokensOf(recorder)).toEqual([3]);
  });

  test('is recorded by the span if it is outside', async () => {
    const { tracer, recorder } = setUp();
    await instrument(tracer, wrapOpenAI(await openai())).chat.completions.create(asked);
    expect(tree(recorder)).toEqual(['chat small', '  POST']);
    expect(tokensOf(recorder)).toEqual([3]);
  });

  test('is recorded by the span if its request is recorded too', async () => {
    const { tracer, recorder } = setUp();
    onTestFinished(recordFetch());
    await instrument(tracer, await openai()).chat.completions.create(asked);
    await tracer.startActiveSpan('checkout', async (span) => {
      await (await openai()).chat.completions.create(asked);
      span.end();
    });
    expect(tree(recorder)).toEqual(['chat small', '  POST', 'checkout', '  openai.chat.completions']);
    expect(tokensOf(recorder)).toEqual([3, 3]);
  });

  test('is recorded once per exporter', async () => {
    const own = recordRuns();
    own.stop();
    const ofOwn = new RunSpanProcessor({ exporter: own.exporter, shouldExport: 'all' });
    const { tracer, recorder } = setUp({
      processors: [new RunSpanProcessor({ shouldExport: 'all' }), new RunSpanProcessor({ shouldExport: 'all' }), ofOwn],
    });
    await wrapOpenAI(instrument(tracer, await openai())).chat.completions.create(asked);
    expect(tree(recorder)).toEqual(ONE);
    expect(own.runs.map(({ name }) => name)).toEqual(['chat small', 'POST']);
    expect(tokensOf(own)).toEqual([3]);
  });

  test('is recorded twice if the outer run is a function of the application', async () => {
    const { tracer, recorder } = setUp();
    const client = instrument(tracer, await openai());
    await traceable(() => client.chat.completions.create(asked), { name: 'call', runType: 'llm' })();
    expect(tree(recorder)).toEqual(['call', '  chat small', '    POST']);
  });

  test('is separate from a call inside its ended span or run', async () => {
    const { tracer, recorder } = setUp();
    const wrapped = wrapOpenAI(await openai());
    await tracer.startActiveSpan('chat small', { attributes: chat }, async (span) => {
      span.end();
      await wrapped.chat.completions.create(asked);
    });
    expect(tree(recorder)).toEqual(['chat small', '  openai.chat.completions']);
    recorder.stop();

    const other = setUp();
    let next = () => {};
    const client = bareClient(await localModel(), {
      fetch: (...request) => {
        next = AsyncResource.bind(() => other.tracer.startSpan('chat small', { attributes: chat }).end());
        return fetch(...request);
      },
    });
    await wrapOpenAI(client).chat.completions.create(asked);
    next();
    expect(tree(other.recorder)).toEqual(['openai.chat.completions', '  chat small']);
  });
});

describe('a wrapped client of Anthropic that emits spans', () => {
  const model = localClaude();
  /** Has three tokens. */
  const question = ask('Is it raining?');
  const clientOf = (provider: BasicTracerProvider) =>
    makeClient(model(), { openTelemetry: { tracerProvider: provider } });

  test.each<[string, (client: ReturnType<typeof clientOf>) => Promise<unknown>]>([
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
  ])('records a call of %s once, even with two processors', async (_, call) => {
    const { tracer, provider, recorder } = setUp({
      processors: [new RunSpanProcessor({ shouldExport: 'all' }), new RunSpanProcessor({ shouldExport: 'all' })],
    });
    await inSpan(tracer, 'answer', () => call(wrapAnthropic(clientOf(provider))));
    expect(tree(recorder).filter((name) => /messages(\.create)?$/.test(name))).toEqual([
      expect.stringMatching(/^ +anthropic\.messages$/),
    ]);
    expect(tokensOf(recorder)).toEqual([3]);
  });

  test('records each of four concurrent calls: two by the wrapper and two by their spans', async () => {
    const { tracer, provider, recorder } = setUp();
    const clients = [wrapAnthropic(clientOf(provider)), clientOf(provider)];
    await inSpan(tracer, 'answer', () =>
      Promise.all(
        clients.flatMap(({ messages }) => [messages.stream(question).finalMessage(), messages.create(question)]),
      ),
    );
    const [byWrapper, bySpan] = ['  anthropic.messages', '  anthropic.messages.create'];
    expect(tree(recorder)).toEqual(['answer', byWrapper, byWrapper, bySpan, bySpan]);
    expect(tokensOf(recorder)).toEqual([3, 3, 3, 3]);
  });

  test("keeps its spans in an exporter that does not receive the wrapper's runs", async () => {
    const own = recordRuns();
    own.stop();
    const { provider, recorder } = setUp({
      processors: [new RunSpanProcessor({ exporter: own.exporter, shouldExport: 'all' })],
    });
    await wrapAnthropic(clientOf(provider)).messages.stream(question).finalMessage();
    expect(tree(recorder)).toEqual(['anthropic.messages']);
    expect(own.runs.map(({ name }) => name)).toEqual(['anthropic.messages.create']);
  });

  test.each([
    ['at its start', true],
    ['after its start', false],
  ])('is recorded by the span of another instrumentation around it, which sets its model %s', async (_, isEarly) => {
    // Attributes of instrumentation-anthropic 0.2.8 of OpenInference.
    const attributes = { 'openinference.span.kind': 'LLM', 'llm.model_name': 'small', 'llm.token_count.prompt': 3 };
    const { tracer, provider, recorder } = setUp();
    await tracer.startActiveSpan('Anthropic Messages', { attributes: isEarly ? attributes : {} }, async (span) => {
      if (!isEarly) span.setAttributes(attributes);
      await clientOf(provider).messages.create(question);
      span.end();
    });
    expect(tree(recorder)).toEqual(['Anthropic Messages']);
    expect(tokensOf(recorder)).toEqual([3]);
  });
});

describe('two spans of model calls', () => {
  test('become two runs if they are of one instrumentation, such as the requests of embedMany', async () => {
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

  test('become two runs if the inner span starts after the outer one has ended', async () => {
    const { tracer, provider, recorder } = setUp();
    await tracer.startActiveSpan('first', { attributes: chat }, async (span) => {
      span.end();
      provider.getTracer('other').startSpan('second', { attributes: chat }).end();
    });
    expect(tree(recorder)).toEqual(['first', '  second']);
  });
});

describe('the telemetry of the AI SDK with wrappers', () => {
  const usage = { inputTokens: { total: 20 }, outputTokens: { total: 9 } };
  const finishReason = { unified: 'stop', raw: undefined } as const;
  const content = [{ type: 'text', text: 'Hello.' }];
  const doGenerate = async () => ({ content, finishReason, usage, warnings: [] }) as never;
  const model = new MockLanguageModelV3({ modelId: 'small', doGenerate });
  const doEmbed = async () => ({ embeddings: [[0.5, 0.25]], usage: { tokens: 5 }, warnings: [] });
  const embedding = new MockEmbeddingModelV3({ modelId: 'vectors', doEmbed });

  test.each<[string, (telemetry: object) => Promise<unknown>, string[], number]>([
    [
      'a wrapped model',
      (telemetry) => ai.generateText({ model: wrapModel(model), prompt: 'Hi', ...telemetry }),
      ['ai.generateText', '  ai.generateText.doGenerate'],
      20,
    ],
    [
      'a wrapped function',
      (telemetry) => wrapAISDK(ai).generateText({ model, prompt: 'Hi', ...telemetry }),
      ['generateText', '  ai.generateText', '    ai.generateText.doGenerate'],
      20,
    ],
    [
      'a wrapped embedding model',
      (telemetry) => ai.embed({ model: wrapModel(embedding), value: 'Hi', ...telemetry }),
      ['ai.embed', '  ai.embed.doEmbed'],
      5,
    ],
  ])('records the model call of %s once, as its span', async (_, call, expected, tokens) => {
    const { tracer, recorder } = setUp();
    await call({ experimental_telemetry: { isEnabled: true, tracer } });
    expect(tree(recorder)).toEqual(expected);
    expect(tokensOf(recorder)).toEqual([tokens]);
  });
});

test('a tool of a wrapped function of the AI SDK is recorded once, as the span of the telemetry', async () => {
  const { tracer, recorder } = setUp();
  const call = { type: 'tool-call', toolCallId: 'call-1', toolName: 'weather', input: '{"city":"Cork"}' } as const;
  const usage = { inputTokens: { total: 20 }, outputTokens: { total: 9 } };
  const answers = [
    { content: [call], finishReason: { unified: 'tool-calls' }, usage, warnings: [] },
    { content: [{ type: 'text', text: 'Rain.' }], finishReason: { unified: 'stop' }, usage, warnings: [] },
  ];
  const model = new MockLanguageModelV3({ modelId: 'small', doGenerate: async () => answers.shift() as never });
  const inputSchema = ai.jsonSchema<{ city: string }>({ type: 'object' });
  const execute = async () => {
    tracer.startSpan('look up').end();
    return 'rain';
  };
  await wrapAISDK(ai).generateText({
    model,
    prompt: 'Hi',
    tools: { weather: { inputSchema, execute } },
    stopWhen: ai.stepCountIs(2),
    experimental_telemetry: { isEnabled: true, tracer },
  });
  const [step, tool] = ['    ai.generateText.doGenerate', '    weather'];
  expect(tree(recorder)).toEqual(['generateText', '  ai.generateText', step, step, tool, '      look up']);
  expect(recorder.runs.find(({ run_type }) => run_type === 'tool')).toMatchObject({
    inputs: { city: 'Cork' },
    outputs: { output: 'rain' },
    extra: { metadata: { recorded_by: ['test', 'wrapAISDK'] } },
  });
});

describe('a step of LangChain', () => {
  /** Creates a LangChain model that calls `body` to produce its answer. */
  class Model extends FakeListChatModel {
    readonly #body: () => Promise<unknown>;

    constructor(body: () => Promise<unknown>) {
      super({ responses: ['Hello.'] });
      this.#body = body;
    }

    override async _generate(...args: Parameters<FakeListChatModel['_generate']>) {
      await this.#body();
      return super._generate(...args);
    }

    override invocationParams() {
      return { model: 'small' } as never;
    }
  }

  const call = (tracer: Tracer) =>
    inSpan(tracer, 'chat small', async (span) => {
      span.setAttributes(chat);
      await soon();
      tracer.startSpan('POST').end();
    });

  test('does not affect a concurrent direct call of the same model in the same trace', async () => {
    const { tracer, recorder } = setUp();
    const started = gate();
    const ended = gate();
    const model = new Model(async () => {
      started.open();
      await ended;
    });
    const direct = () => started.then(() => call(tracer)).finally(() => ended.open());
    await inSpan(tracer, 'answer', () => Promise.all([model.invoke('Hi', { callbacks, runName: 'model' }), direct()]));
    expect(tree(recorder)).toEqual(['answer', '  chat small', '    POST', '  model']);
  });

  test.each<[string, RunSpanProcessor, string[]]>([
    [
      'is recorded beside it',
      new RunSpanProcessor({ shouldExport: 'all' }),
      ['answer', '  chat small', '    POST', '  model'],
    ],
    [
      'is left out by `shouldExport`',
      new RunSpanProcessor({ shouldExport: ({ name }) => name !== 'chat small' }),
      ['answer', '  POST', '  model'],
    ],
  ])('and the span of the client that it calls: the span %s', async (_, processor, expected) => {
    const { tracer, recorder } = setUp({ processors: [processor] });
    await inSpan(tracer, 'answer', () => new Model(() => call(tracer)).invoke('Hi', { callbacks, runName: 'model' }));
    expect(tree(recorder)).toEqual(expected);
  });
});
