import { appendFileSync, readFileSync } from 'node:fs';
import type { Server } from 'node:http';
import type { FetchTransport } from '../integrations/fetch/record-fetch.ts';
import { withoutTracing } from '../platform/suppress-tracing.ts';
import { type Fixture, parseFixture, type RecordedRequest } from './fixture.ts';
import { Replay, type ReplayEvent } from './replay.ts';

/** The content of the file that `RUNSPAN_REPLAY` names. */
export interface ReplayJob extends Fixture {
  /** Requests from the one with this number are sent. */
  readonly liveFrom?: number | undefined;
  /** The file to which each event is added, as a line of JSON. Absent if nobody reads the events. */
  readonly report?: string | undefined;
}

/** The replay in a process of its own. The process ends when the recorded trace has ended. */
export interface ChildReplay {
  readonly answer: FetchTransport;
  /** Sends the recorded HTTP request, if there is one, to a server of this process. */
  listening(server: Server): void;
}

/** Starts a replay. Throws if the file cannot be read. */
export function replayOf(file: string): ChildReplay {
  const job = parseFixture(
    withoutTracing(() => readFileSync(file, 'utf8')),
    file,
  ) as ReplayJob;
  const { report, liveFrom, request } = job;
  const replay = new Replay(job, liveFrom, (event: ReplayEvent) => {
    if (report !== undefined) withoutTracing(() => appendFileSync(report, `${JSON.stringify(event)}\n`));
    if ('ended' in event) process.exit();
  });
  return {
    answer: (input, init, send) => replay.answer(input, init, send),
    listening(server) {
      if (request !== undefined) void withoutTracing(() => sendTo(server, request));
    },
  };
}

/** Ends the process when the response has arrived. */
async function sendTo(server: Server, { method, path, contentType, body }: RecordedRequest): Promise<void> {
  const address = server.address();
  // A server on a socket has no port.
  if (typeof address !== 'object' || address === null) return;
  const { address: host, port } = address;
  const name = host === '::' || host === '0.0.0.0' ? '127.0.0.1' : host.includes(':') ? `[${host}]` : host;
  const hasBody = method !== 'GET' && method !== 'HEAD';
  const response = await fetch(`http://${name}:${port}${path}`, {
    method,
    headers: contentType === undefined ? {} : { 'content-type': contentType },
    ...(hasBody && { body }),
  });
  await response.arrayBuffer();
  // The server ends the run of the request in this turn of the event loop.
  setImmediate(() => process.exit());
}
