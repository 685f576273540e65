import { describe, expect, onTestFinished, test } from 'vitest';
import { createReceiver } from '#src/receiver.ts';
import { ingestServer } from '../support/ingest-server.ts';
import { moduleText, runNode } from '../support/program.ts';

describe('the end of the process', () => {
  const program = (spanProcessor: string, deed: string) =>
    moduleText(`
      import { BasicTracerProvider, SimpleSpanProcessor } from '@opentelemetry/sdk-trace-base';
      import { ROOT_CONTEXT, trace } from '@opentelemetry/api';
      const { configure } = await import('./dist/index.js');
      const { RunSpanExporter, RunSpanProcessor } = await import('./dist/otel.js');
      const provider = new BasicTracerProvider({ spanProcessors: [${spanProcessor}] });
      const tracer = provider.getTracer('t');
      ${deed}`);

  const parentNeverEnds = `
    const parent = tracer.startSpan('never ended');
    tracer.startSpan('child', {}, trace.setSpan(ROOT_CONTEXT, parent)).end();`;

  test.each([
    ['open spans and queued runs', 'new RunSpanProcessor({ shouldExport: "all" })', ['child', 'never ended']],
    ['spans that wait for their parents', 'new SimpleSpanProcessor(new RunSpanExporter())', ['child']],
  ])('delivers %s without a flush', async (_, spanProcessor, names) => {
    const receiver = await createReceiver({ strict: true });
    onTestFinished(() => receiver.close());
    const ended = await runNode(program(spanProcessor, parentNeverEnds), { RUNSPAN_ENDPOINT: receiver.url });
    expect(ended).toMatchObject({ code: 0, stderr: '' });
    expect((await receiver.runs()).map(({ name }) => name).toSorted()).toEqual(names);
  });

  test('is not delayed by a hanging service or resource', async () => {
    await using server = await ingestServer(() => 'hold');
    const deed = `
      configure({ limits: { exitFlushMs: 100 } });
      const resource = { attributes: {}, asyncAttributesPending: true, waitForAsyncAttributes: () => new Promise(() => {}) };
      const span = tracer.startSpan('a');
      Object.defineProperty(span, 'resource', { value: resource });
      span.end();
      tracer.startSpan('b').end();
      const startedMs = performance.now();
      process.on('exit', () => console.log(performance.now() - startedMs < 10_000));`;
    const ended = await runNode(program('new RunSpanProcessor({ shouldExport: "all" })', deed), {
      RUNSPAN_ENDPOINT: server.url,
    });
    expect(ended).toMatchObject({ code: 0, stdout: 'true\n' });
  });
});
