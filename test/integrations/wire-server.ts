import { createServer } from 'node:http';
import { listenInTest } from '../support/listen-in-test.ts';
import { requestBody } from '../support/request-body.ts';

/** A response. Each item of `parts` is written separately. */
export interface WireResponse {
  readonly status?: number;
  readonly type?: string;
  readonly parts: readonly (string | Uint8Array)[];
  /** Leaves the response open after the last part. */
  readonly staysOpen?: boolean;
}

/** Starts a server that answers every request of one test with the same response, and returns its URL. */
export async function serveWire({ status = 200, type = 'application/json', parts, staysOpen }: WireResponse) {
  const server = createServer(async (request, response) => {
    await requestBody(request);
    response.writeHead(status, { 'content-type': type, 'x-request-id': 'req_1', 'request-id': 'req_1' });
    for (const part of parts) {
      response.write(part);
      // Makes each part arrive as a separate chunk.
      await new Promise((resolve) => setImmediate(resolve));
    }
    if (staysOpen !== true) response.end();
  });
  return listenInTest(server);
}

export const json = (value: unknown): WireResponse => ({ parts: [JSON.stringify(value)] });

export const events = (...values: unknown[]): WireResponse => ({
  type: 'text/event-stream',
  parts: values.map((value) => {
    const { type } = value as { type?: string };
    const data = typeof value === 'string' ? value : JSON.stringify(value);
    return `${type === undefined ? '' : `event: ${type}\n`}data: ${data}\n\n`;
  }),
});

export const lines = (...values: unknown[]): WireResponse => ({
  type: 'application/x-ndjson',
  parts: values.map((value) => `${JSON.stringify(value)}\n`),
});
