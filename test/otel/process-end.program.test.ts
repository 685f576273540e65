import { describe, expect, test } from 'vitest';
import { ingestServer } from '../support/ingest-server.ts';
import { moduleText, runNode } from '../support/program.ts';
import { startReceiver } from '../support/receiver.ts';

describe('the end of the process', () => {
  const program = (deed: string) =>
    moduleText(`
      import { BasicTracerProvider } from '@opentelemetry/sdk-trace-base';
      import { ROOT_CONTEXT, trace } from '@opentelemetry/api';
      const { configure } = await import('./dist/index.js');
      const { RunSpanProcessor } = await import('./dist/otel.js');
      const provider = new BasicTracerProvider({ spanProcessors: [new RunSpanProcessor({ shouldExport: "all" })] });
      const tracer = provider.getTracer('t');
      ${deed}`);

  const parentNeverEnds = `
    const parent = tracer.startSpan('never ended');
    tracer.startSpan('child', {}, trace.setSpan(ROOT_CONTEXT, parent)).end();`;

  test('delivers open spans and queued runs without a flush', async () => {
    const receiver = await startReceiver({ strict: true });
    const ended = await runNode(program(parentNeverEnds), { RUNSPAN_ENDPOINT: receiver.url });
    expect(ended).toMatchObject({ code: 0, stderr: '' });
    expect((await receiver.runs()).map(({ name }) => name).toSorted()).toEqual(['child', 'never ended']);
  });

  test('is not delayed by a hanging service or resource', async () => {
    await using server = await ingestServer(() => 'hold');
    const deed = `
      const resource = { attributes: {}, asyncAttributesPending: true, waitForAsyncAttributes: () => new Promise(() => {}) };
      const span = tracer.startSpan('a');
      Object.defineProperty(span, 'resource', { value: resource });
      span.end();
      tracer.startSpan('b').end();
      const startedMs = performance.now();
      process.on('exit', () => console.log(performance.now() - startedMs < 10_000));`;
    const env = { RUNSPAN_ENDPOINT: server.url, RUNSPAN_DEV: '{"limits":{"exitFlushMs":100}}' };
    expect(await runNode(program(deed), env)).toMatchObject({ code: 0, stdout: 'true\n' });
  });
});
