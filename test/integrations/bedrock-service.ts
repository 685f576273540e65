import { createServer, type ServerHttp2Stream } from 'node:http2';
import { crc32 } from 'node:zlib';
import { onTestFinished } from 'vitest';
import { listen } from '../support/listen.ts';

/** An answer of the service. Events are streamed, each as a pair of its type and its fields. */
export interface BedrockAnswer {
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly json?: object;
  readonly events?: readonly (readonly [type: string, fields: object])[];
  /** Leaves the response open after the last event. */
  readonly staysOpen?: boolean;
}

export interface BedrockService {
  readonly url: string;
  readonly requests: string[];
}

/** Starts a service that speaks HTTP/2 like Bedrock, and gives the same answer to every request of one test. */
export async function bedrockService(answer: BedrockAnswer): Promise<BedrockService> {
  const requests: string[] = [];
  const server = createServer();
  server.on('stream', async (stream, { ':path': path }) => {
    stream.on('error', () => {});
    const body = await stream.toArray().catch(() => []);
    requests.push(`${path} ${Buffer.concat(body)}`);
    await respond(stream, answer);
  });
  const sessions: { destroy(): void }[] = [];
  server.on('session', (session) => sessions.push(session));
  const url = await listen(server);
  onTestFinished(() => {
    for (const session of sessions) session.destroy();
    server.close();
  });
  return { url, requests };
}

async function respond(stream: ServerHttp2Stream, answer: BedrockAnswer): Promise<void> {
  const { status = 200, headers, json, events = [], staysOpen } = answer;
  const type = json === undefined ? 'application/vnd.amazon.eventstream' : 'application/json';
  stream.respond({ ':status': status, 'content-type': type, 'x-amzn-requestid': 'request-1', ...headers });
  if (json !== undefined) stream.write(JSON.stringify(json));
  for (const [name, fields] of events) {
    if (stream.destroyed) return;
    stream.write(frame(name, JSON.stringify(fields)));
    // Makes each event arrive as a separate chunk.
    await new Promise((resolve) => setImmediate(resolve));
  }
  if (staysOpen !== true) stream.end();
}

/** Returns the event that carries a part of the response to `InvokeModelWithResponseStream`. */
export function chunk(fields: object): readonly [string, object] {
  return ['chunk', { bytes: Buffer.from(JSON.stringify(fields)).toString('base64') }];
}

/**
 * Encodes an event: two lengths, their checksum, the headers, the body, and the checksum of all. Each header is a name, the
 * type 7 for text, and a text: https://smithy.io/2.0/aws/amazon-eventstream.html
 */
function frame(type: string, body: string): Buffer {
  const kind = type.endsWith('Exception') ? 'exception' : 'event';
  const headers = Buffer.concat(
    Object.entries({ [`:${kind}-type`]: type, ':message-type': kind, ':content-type': 'application/json' }).map(
      ([name, value]) =>
        Buffer.from(`${String.fromCharCode(name.length)}${name}\x07\0${String.fromCharCode(value.length)}${value}`),
    ),
  );
  const bytes = Buffer.alloc(16 + headers.length + Buffer.byteLength(body));
  bytes.writeUInt32BE(bytes.length, 0);
  bytes.writeUInt32BE(headers.length, 4);
  bytes.writeUInt32BE(crc32(bytes.subarray(0, 8)), 8);
  headers.copy(bytes, 12);
  bytes.write(body, 12 + headers.length);
  bytes.writeUInt32BE(crc32(bytes.subarray(0, -4)), bytes.length - 4);
  return bytes;
}
