import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { createReceiver } from '../../src/receiver.ts';
import { snippetsOf } from '../package/snippets.ts';
import { root } from '../support/folders.ts';
import { runNode } from '../support/program.ts';
import { asApplication } from './application.ts';

test('the program of the page on other exporters sends to a collector and to us, and neither sees the other', async () => {
  const page = 'docs/opentelemetry-beside.md';
  const [snippet] = snippetsOf(page, readFileSync(join(root, page), 'utf8'));
  const receiver = await createReceiver({ port: 0 });
  onTestFinished(() => receiver.close());
  const collected: string[] = [];
  const collector = createServer(async (request, response) => {
    let text = '';
    for await (const chunk of request) text += chunk;
    const { resourceSpans } = JSON.parse(text) as {
      resourceSpans: { scopeSpans: { spans: { name: string }[] }[] }[];
    };
    for (const { scopeSpans } of resourceSpans)
      for (const { spans } of scopeSpans) collected.push(...spans.map(({ name }) => `${request.url} ${name}`));
    response.end('{}');
  });
  await new Promise<void>((resolve) => collector.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void collector.close());
  const { code, stderr } = await runNode([asApplication(snippet?.code ?? '')], {
    RUNSPAN_ENDPOINT: receiver.url,
    OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${(collector.address() as AddressInfo).port}`,
  });
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  expect(collected).toEqual(['/v1/traces checkout']);
  expect((await receiver.runs()).map(({ name }) => name)).toEqual(['checkout']);
});
