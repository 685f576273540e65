import { createServer } from 'node:http';
import { onTestFinished } from 'vitest';
import { listen } from '../support/listen.ts';
import { requestBody } from '../support/request-body.ts';

interface OtlpSpan {
  readonly name: string;
  readonly traceId: string;
}

export interface Collector {
  readonly url: string;
  bodies(path: string): string[];
  spans(path: string): OtlpSpan[];
}

/** Starts a server that answers each request with `{}`, until the end of the test. */
export async function startCollector(): Promise<Collector> {
  const received: { readonly path: string; readonly body: string }[] = [];
  const server = createServer(async (request, response) => {
    const body = await requestBody(request);
    received.push({ path: request.url?.split('?', 1)[0] ?? '', body: body?.toString() ?? '' });
    response.writeHead(200, { 'content-type': 'application/json' }).end('{}');
  });
  const url = await listen(server);
  onTestFinished(() => void server.close());
  const bodies = (path: string): string[] => received.filter((one) => one.path === path).map(({ body }) => body);
  return {
    url,
    bodies,
    spans: (path) =>
      bodies(path).flatMap((body) => {
        const { resourceSpans } = JSON.parse(body) as { resourceSpans: { scopeSpans: { spans: OtlpSpan[] }[] }[] };
        return resourceSpans.flatMap(({ scopeSpans }) => scopeSpans.flatMap(({ spans }) => spans));
      }),
  };
}
