// A model call recorded by two libraries becomes one run, and two calls become two runs. Anthropic's SDK emits its own spans.
// Attributes: https://github.com/open-telemetry/semantic-conventions-genai/blob/main/docs/gen-ai/gen-ai-spans.md
import { type BasicTracerProvider, InMemorySpanExporter, SimpleSpanProcessor } from '@opentelemetry/sdk-trace-base';
import { describe, expect, test } from 'vitest';
import { wrapAnthropic } from '../../src/anthropic.ts';
import { RunSpanExporter, RunSpanProcessor } from '../../src/otel.ts';
import { type RunRecorder, recordRuns } from '../../src/testing.ts';
import { ask, localModel, makeClient } from '../integrations/anthropic-client.ts';
import { inSpan, setUp, tree } from './set-up.ts';

const model = localModel();

/** Creates a client that emits spans to `provider`. */
const clientOf = (provider: BasicTracerProvider) =>
  makeClient(model(), { openTelemetry: { tracerProvider: provider } });

/** Returns the input tokens of all runs that have any. The question "Is it raining?" has three. */
const tokensOf = ({ runs }: RunRecorder) =>
  runs.flatMap(({ outputs }) => (outputs?.usage_metadata as { input_tokens?: number })?.input_tokens ?? []);

const question = ask('Is it raining?');
const chat = { 'gen_ai.operation.name': 'chat', 'gen_ai.request.model': 'small' };

describe('a wrapped client of Anthropic that emits spans', () => {
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
  ])('records a call of %s once', async (_, call) => {
    const { tracer, provider, recorder } = setUp();
    const client = wrapAnthropic(clientOf(provider));
    await inSpan(tracer, 'answer', () => call(client));
    expect(tree(recorder).filter((name) => /messages(\.create)?$/.test(name))).toEqual([
      expect.stringMatching(/^ +anthropic\.messages$/),
    ]);
    expect(tokensOf(recorder)).toEqual([3]);
  });

  test('records each of four concurrent calls: two by the wrapper and two by their spans', async () => {
    const { tracer, provider, recorder } = setUp();
    const [wrapped, bare] = [wrapAnthropic(clientOf(provider)), clientOf(provider)];
    await inSpan(tracer, 'answer', () =>
      Promise.all([
        bare.messages.stream(question).finalMessage(),
        wrapped.messages.stream(question).finalMessage(),
        bare.messages.create(question),
        wrapped.messages.create(question),
      ]),
    );
    expect(tree(recorder)).toEqual([
      'answer',
      '  anthropic.messages',
      '  anthropic.messages',
      '  anthropic.messages.create',
      '  anthropic.messages.create',
    ]);
    expect(tokensOf(recorder)).toEqual([3, 3, 3, 3]);
  });

  test('records a stream once even with two processors', async () => {
    const { tracer, provider, recorder } = setUp({ processors: [new RunSpanProcessor(), new RunSpanProcessor()] });
    const [wrapped, bare] = [wrapAnthropic(clientOf(provider)), clientOf(provider)];
    await inSpan(tracer, 'answer', () => wrapped.messages.stream(question).finalMessage());
    await inSpan(tracer, 'other', () => bare.messages.stream(question).finalMessage());
    expect(tree(recorder)).toEqual(['answer', '  anthropic.messages', 'other', '  anthropic.messages.create']);
  });

  test("keeps its spans in an exporter that does not receive the wrapper's runs", async () => {
    const own = recordRuns();
    own.stop();
    const { provider, recorder } = setUp({ processors: [new RunSpanProcessor({ exporter: own.exporter })] });
    await wrapAnthropic(clientOf(provider)).messages.stream(question).finalMessage();
    expect(tree(recorder)).toEqual(['anthropic.messages']);
    expect(own.runs.map(({ name }) => name)).toEqual(['anthropic.messages.create']);
  });
});

describe('two instrumentations of one call', () => {
  /** OpenInference's span is active while the client creates its own. Attributes are from instrumentation-anthropic 0.2.8. */
  const openInference = { 'openinference.span.kind': 'LLM', 'llm.model_name': 'small', 'llm.token_count.prompt': 3 };

  test.each([
    ['at its start', true],
    ['after its start', false],
  ])('record only the outer span, which sets its model %s', async (_, isEarly) => {
    const { tracer, provider, recorder } = setUp();
    await tracer.startActiveSpan('Anthropic Messages', { attributes: isEarly ? openInference : {} }, async (span) => {
      if (!isEarly) span.setAttributes(openInference);
      await clientOf(provider).messages.create(question);
      span.end();
    });
    expect(tree(recorder)).toEqual(['Anthropic Messages']);
    expect(tokensOf(recorder)).toEqual([3]);
  });

  test('record one run if the spans are exported after they have ended', async () => {
    const memory = new InMemorySpanExporter();
    const { tracer, provider, recorder } = setUp({ processors: [new SimpleSpanProcessor(memory)] });
    await inSpan(provider.getTracer('openinference'), 'outer', async (outer) => {
      outer.setAttributes({ ...openInference });
      await inSpan(tracer, 'inner', async (inner) => {
        inner.setAttributes(chat);
        tracer.startSpan('POST').end();
      });
    });
    await new Promise((resolve) => new RunSpanExporter().export(memory.getFinishedSpans(), resolve));
    expect(tree(recorder)).toEqual(['outer', '  POST']);
  });

  test('are not assumed for nested spans of one instrumentation, such as the requests of embedMany', async () => {
    const { tracer, recorder } = setUp();
    await inSpan(tracer, 'embedMany', async (outer) => {
      const embeddings = { 'gen_ai.operation.name': 'embeddings', 'gen_ai.request.model': 'small' };
      outer.setAttributes(embeddings);
      const attributes = { ...embeddings, 'gen_ai.usage.input_tokens': 3 };
      for (const name of ['first', 'second']) tracer.startSpan(name, { attributes }).end();
    });
    expect(tree(recorder)).toEqual(['embedMany', '  first', '  second']);
    expect(tokensOf(recorder)).toEqual([3, 3]);
  });

  test('record both if the inner span starts after the outer one has ended', async () => {
    const { tracer, recorder } = setUp();
    await tracer.startActiveSpan('first', { attributes: chat }, async (span) => {
      span.end();
      tracer.startSpan('second', { attributes: chat }).end();
    });
    expect(tree(recorder)).toEqual(['first', '  second']);
  });
});
