import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createReceiver, type Receiver } from '#src/receiver.ts';
import { type LocalModel, startLocalModel } from '../../examples/local-model/server.js';
import { guides, read } from '../package/repository.ts';
import { masked, snippetsOf } from '../package/snippets.ts';
import { runNode } from '../support/program.ts';
import { asApplication } from './application.ts';

// Other tests run those of the chat and of Langfuse, and blocks with a file name.
const pages = ['README.md', ...guides].filter(
  (page) => !page.startsWith('docs/chat') && page !== 'docs/from-langfuse.md',
);
const programs = pages
  .flatMap((page) => snippetsOf(page, read(page)))
  .filter(({ isOfPeers, file }) => isOfPeers && file === undefined);

describe('the snippet that needs packages of peers', () => {
  let receiver: Receiver;
  let model: LocalModel;
  const collector = createServer((request, response) => void request.resume().on('end', () => response.end('{}')));

  beforeAll(async () => {
    receiver = await createReceiver({ port: 0 });
    model = await startLocalModel();
    await new Promise<void>((resolve) => collector.listen(0, '127.0.0.1', resolve));
  });

  afterAll(async () => {
    collector.close();
    await model?.close();
    await receiver?.close();
  });

  it.each(programs.map((program) => [program.place, program] as const))('%s runs', async (_, program) => {
    const { port } = collector.address() as AddressInfo;
    const { code, stdout, stderr } = await runNode([asApplication(program.code)], {
      RUNSPAN_ENDPOINT: receiver.url,
      SENTRY_DSN: `http://key@127.0.0.1:${port}/1`,
      OPENAI_BASE_URL: `${model.url}/v1`,
      OPENAI_API_KEY: 'local',
      OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${port}`,
      TRACELOOP_TELEMETRY: 'false',
    });
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    if (program.prints !== undefined) expect(masked(stdout)).toEqual(masked(program.prints));
  });
});
