// Spans and runs of wrapped functions, methods, clients, models and LangChain in one trace, and model calls that an
// instrumentation and a wrapper both record. The tests with real instrumentations are in test/peers/otel-both.test.ts.
import { AsyncResource } from 'node:async_hooks';
import '@langchain/core/context';
import { RunnableLambda } from '@langchain/core/runnables';
import { FakeListChatModel } from '@langchain/core/utils/testing';
import type { Attributes, Span, Tracer } from '@opentelemetry/api';
import * as ai from 'ai';
import { MockEmbeddingModelV3, MockLanguageModelV3 } from 'ai/test';
import type OpenAI from 'openai';
import { describe, expect, test } from 'vitest';
import { wrapAISDK, wrapModel } from '../../src/ai.ts';
import { startRun, traceable, traced, withRun } from '../../src/index.ts';
import { RunspanCallbackHandler } from '../../src/langchain.ts';
import { wrapOpenAI } from '../../src/openai.ts';
import { RunSpanProcessor } from '../../src/otel.ts';
import { type RunRecorder, recordRuns } from '../../src/testing.ts';
import { bareClient, localModel, tea } from '../integrations/local-openai.ts';
import { gate } from '../support/gate.ts';
import { below, inSpan, runNamed, setUp, tree } from './set-up.ts';

const soon = () => new Promise((resolve) => setImmediate(resolve));
const callbacks = [new RunspanCallbackHandler()];
const asked = { model: 'small', messages: tea };
const chat = { 'gen_ai.operation.name': 'chat', 'gen_ai.request.model': 'small' };

/** Instruments a client: each call becomes a span, with a span of its request below. */
function instrument(tracer: Tracer, client: OpenAI, attributes: Attributes = chat, late?: Attributes): OpenAI {
  const { completions } = client.chat;
  const create = completions.create as (...args: unknown[]) => PromiseLike<unknown>;
  completions.create = ((...args: unknown[]) =>
    tracer.startActiveSpan('chat small', { attributes }, (span) => {
      if (late !== undefined) span.setAttributes(late);
      tracer.startSpan('POST').end();
      const answer = Reflect.apply(create, completions, args) as PromiseLike<unknown>;
      const end = () => {
        span.setAttributes({ 'gen_ai.usage.input_tokens': 3, 'gen_ai.usage.output_tokens': 4 });
        span.end();
      };
      answer.then(end, end);
      return answer;
    })) as never;
  return client;
}

/** Returns the input tokens of all runs that have any. */
const tokensOf = ({ runs }: RunRecorder) =>
  runs.map(({ outputs }) => (outputs?.usage_metadata as { input_tokens?: number })?.input_tokens ?? 0).filter(Boolean);

describe('spans and runs in one trace', () => {
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

  test('are nested with a context manager', async () => {
    const { tracer, recorder } = setUp();
    const client = wrapOpenAI(bareClient(await localModel()));
    await inSpan(tracer, 'request', () => new Shop(tracer).answer(client));
    expect(tree(recorder)).toEqual([
      'request',
      '  answer',
      '    span',
      '      rest',
      '        last span',
      '      step',
      '        inner span',
      '          openai.chat.completions',
    ]);
  });

  test('without a context manager have spans below runs, but no run below a span', async () => {
    const { tracer, recorder } = setUp({ contextManager: false });
    const client = wrapOpenAI(bareClient(await localModel()));
    await inSpan(tracer, 'request', () => new Shop(tracer).answer(client));
    expect(tree(recorder)).toEqual([
      'answer',
      '  rest',
      '    last span',
      '  span',
      '  step',
      '    inner span',
      '    openai.chat.completions',
      'request',
    ]);
  });

  test('without a context manager are nested by explicit parents and withRun', async () => {
    const { tracer, recorder } = setUp({ contextManager: false });
    const span = tracer.startSpan('span');
    tracer.startSpan('child', {}, below(span)).end();
    const run = startRun({ name: 'run' });
    withRun(run, () => tracer.startSpan('in run').end());
    run.end();
    span.end();
    expect(tree(recorder)).toEqual(['run', '  in run', 'span', '  child']);
  });
});

describe('a model call with a wrapper and an instrumentation', () => {
  const wrappedOutside = (tracer: Tracer, client: OpenAI, ...given: [Attributes?, Attributes?]) =>
    wrapOpenAI(instrument(tracer, client, ...given));

  test('is recorded by the wrapper if it is outside, and the children of the span move up', async () => {
    const { tracer, recorder } = setUp();
    const client = wrappedOutside(tracer, bareClient(await localModel()));
    await inSpan(tracer, 'answer', () => client.chat.completions.create(asked));
    expect(tree(recorder)).toEqual(['answer', '  openai.chat.completions', '    POST']);
    expect(tokensOf(recorder)).toEqual([3]);
  });

  test('is recorded by the wrapper if the span gets its attributes after its start', async () => {
    const { tracer, recorder } = setUp();
    const client = wrappedOutside(tracer, bareClient(await localModel()), {}, chat);
    await client.chat.completions.create(asked);
    expect(tree(recorder)).toEqual(['openai.chat.completions', '  POST']);
    expect(tokensOf(recorder)).toEqual([3]);
  });

  test('is recorded by the span if it is outside', async () => {
    const { tracer, recorder } = setUp();
    const client = instrument(tracer, wrapOpenAI(bareClient(await localModel())));
    await client.chat.completions.create(asked);
    expect(tree(recorder)).toEqual(['chat small', '  POST']);
    expect(tokensOf(recorder)).toEqual([3]);
  });

  test('is recorded once per exporter', async () => {
    const own = recordRuns();
    own.stop();
    const processors = [
      new RunSpanProcessor(),
      new RunSpanProcessor(),
      new RunSpanProcessor({ exporter: own.exporter }),
    ];
    const { tracer, recorder } = setUp({ processors });
    const client = wrappedOutside(tracer, bareClient(await localModel()));
    await client.chat.completions.create(asked);
    expect(tree(recorder)).toEqual(['openai.chat.completions', '  POST']);
    expect(own.runs.map(({ name }) => name)).toEqual(['chat small', 'POST']);
    expect(tokensOf(own)).toEqual([3]);
  });

  test.each<[string, Attributes]>([
    ['another model', { ...chat, 'gen_ai.request.model': 'large' }],
    ['no model', { 'gen_ai.operation.name': 'chat' }],
    ['another kind of call', { ...chat, 'gen_ai.operation.name': 'embeddings' }],
    ['another operation', { 'gen_ai.request.model': 'small', 'gen_ai.operation.name': 'invoke_agent' }],
  ])('is separate from a span with %s', async (_, attributes) => {
    const { tracer, recorder } = setUp();
    const client = wrappedOutside(tracer, bareClient(await localModel()), attributes);
    await client.chat.completions.create(asked);
    expect(tree(recorder)).toEqual(['openai.chat.completions', '  chat small', '    POST']);
  });

  test('is recorded twice if the outer run is a function of the application', async () => {
    const { tracer, recorder } = setUp();
    const client = instrument(tracer, bareClient(await localModel()));
    await traceable(() => client.chat.completions.create(asked), { name: 'call', runType: 'llm' })();
    expect(tree(recorder)).toEqual(['call', '  chat small', '    POST']);
  });

  test('is separate from the next call of a wrapper inside its ended span', async () => {
    const { tracer, recorder } = setUp();
    const client = wrapOpenAI(bareClient(await localModel()));
    await tracer.startActiveSpan('chat small', { attributes: chat }, async (span) => {
      span.end();
      await client.chat.completions.create(asked);
    });
    expect(tree(recorder)).toEqual(['chat small', '  openai.chat.completions']);
  });

  test('is separate from the next span of an instrumentation inside its ended run', async () => {
    const { tracer, recorder } = setUp();
    let next = () => {};
    const client = bareClient(await localModel(), {
      fetch: (...request) => {
        next = AsyncResource.bind(() => tracer.startSpan('chat small', { attributes: chat }).end());
        return fetch(...request);
      },
    });
    await wrapOpenAI(client).chat.completions.create(asked);
    next();
    expect(tree(recorder)).toEqual(['openai.chat.completions', '  chat small']);
  });

  test('keeps other spans without attributes below it', async () => {
    const { tracer, recorder } = setUp();
    const client = wrappedOutside(tracer, bareClient(await localModel()), {});
    await client.chat.completions.create(asked);
    expect(tree(recorder)).toEqual(['openai.chat.completions', '  chat small', '    POST']);
    expect(recorder.runs.every(({ end_time }) => end_time !== undefined)).toBe(true);
  });
});

describe('the telemetry of the AI SDK with wrappers', () => {
  const usage = { inputTokens: { total: 20 }, outputTokens: { total: 9 } };
  const finishReason = { unified: 'stop', raw: undefined } as const;
  const model = () =>
    new MockLanguageModelV3({
      modelId: 'small',
      doGenerate: async () =>
        ({ content: [{ type: 'text', text: 'Hello.' }], finishReason, usage, warnings: [] }) as never,
    });
  const telemetry = (tracer: Tracer) => ({ experimental_telemetry: { isEnabled: true, tracer } });

  test('records a wrapped model once, as the span of its call', async () => {
    const { tracer, recorder } = setUp();
    await ai.generateText({ model: wrapModel(model()), prompt: 'Hi', ...telemetry(tracer) });
    expect(tree(recorder)).toEqual(['ai.generateText', '  ai.generateText.doGenerate']);
    expect(tokensOf(recorder)).toEqual([20]);
    expect(runNamed(recorder, 'ai.generateText.doGenerate').run_type).toBe('llm');
  });

  test('counts tokens once if the functions are wrapped too', async () => {
    const { tracer, recorder } = setUp();
    const { generateText } = wrapAISDK(ai);
    await generateText({ model: model(), prompt: 'Hi', ...telemetry(tracer) });
    expect(tree(recorder)).toEqual(['generateText', '  ai.generateText', '    ai.generateText.doGenerate']);
    expect(tokensOf(recorder)).toEqual([20]);
  });

  test('records an embedding once', async () => {
    const { tracer, recorder } = setUp();
    const embedding = new MockEmbeddingModelV3({
      modelId: 'vectors',
      doEmbed: async () => ({ embeddings: [[0.5, 0.25]], usage: { tokens: 5 }, warnings: [] }),
    });
    await ai.embed({ model: wrapModel(embedding), value: 'Hi', ...telemetry(tracer) });
    expect(tree(recorder)).toEqual(['ai.embed', '  ai.embed.doEmbed']);
    expect(tokensOf(recorder)).toEqual([5]);
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
    inSpan(tracer, 'chat small', async (span: Span) => {
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
    await inSpan(tracer, 'answer', () =>
      Promise.all([
        model.invoke('Hi', { callbacks, runName: 'model' }),
        started.then(() => call(tracer)).finally(() => ended.open()),
      ]),
    );
    expect(tree(recorder)).toEqual(['answer', '  chat small', '    POST', '  model']);
  });

  test.each<[string, RunSpanProcessor, string[]]>([
    ['is recorded beside it', new RunSpanProcessor(), ['answer', '  chat small', '    POST', '  model']],
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
