import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { createExporter } from '../../src/index.ts';
import { RunSpanProcessor } from '../../src/otel.ts';
import { setUp } from './set-up.ts';

/** A service that takes everything and notes what it was asked. */
async function service() {
  const requests: string[] = [];
  const server = createServer((request, response) => {
    requests.push(`${request.method} ${request.url}`);
    request.resume().on('end', () => response.writeHead(request.method === 'GET' ? 404 : 202).end('{}'));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void server.close());
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, requests };
}

test('every request of ours is made with tracing suppressed, so that no instrumentation makes a span of it', async () => {
  const { url, requests } = await service();
  const exporter = createExporter({ endpoint: url, apiKey: 'key' });
  const { tracer, provider } = setUp({ processors: [new RunSpanProcessor({ exporter })] });
  const recorded: boolean[] = [];
  // What instrumentation-undici does when a request is made.
  const note = () => recorded.push(tracer.startSpan('request').isRecording());
  subscribe('undici:request:create', note);
  onTestFinished(() => void unsubscribe('undici:request:create', note));

  tracer.startActiveSpan('a', (span) => span.end());
  await provider.forceFlush();
  await exporter.close();

  expect(requests.toSorted()).toEqual(['GET /info', 'POST /runs/multipart']);
  expect(recorded).toEqual([false, false]);
  expect(exporter.stats()).toMatchObject({ created: 1, sent: 1 });
});
