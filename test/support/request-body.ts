import type { IncomingMessage } from 'node:http';

/**
 * Returns the body of a request, or undefined if the client disconnects before its end. Tests close connections at
 * their end, and an unhandled error would fail the whole suite.
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
