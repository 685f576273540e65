import type { IncomingMessage } from 'node:http';

/**
 * The body of a request. Undefined when its client has gone before all of it had come: a test that ends closes connections, and an
 * error that nobody handles would fail the whole suite.
 */
export async function requestBody(request: IncomingMessage): Promise<Buffer | undefined> {
  const chunks: Buffer[] = [];
  try {
    for await (const chunk of request) chunks.push(chunk);
  } catch {
    return undefined;
  }
  return Buffer.concat(chunks);
}
