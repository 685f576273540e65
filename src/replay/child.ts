import { appendFileSync, readFileSync } from 'node:fs';
import type { Server } from 'node:http';
import { diagnostics } from '../base/diagnostics.ts';
import { messageOf } from '../base/text.ts';
import type { FetchTransport } from '../integrations/fetch/record-fetch.ts';
import { withoutTracing } from '../platform/suppress-tracing.ts';
import { parseFixture, type RecordedRequest } from './fixture.ts';
import { FixtureReplay, type ReplayEvent, type ReplayJob } from './fixture-replay.ts';

/** The replay in a process of its own. */
export interface ChildReplay {
  readonly answer: FetchTransport;
  /** Sends the recorded HTTP request, if there is one, to a server of this process. */
  listening(server: Server): void;
  /** Reports a model call that a replay cannot answer. */
  refuse(problem: string): void;
}

/** Starts a replay. Throws if the file cannot be read. */
export function replayOf(file: string): ChildReplay {
  const text = withoutTracing(() => readFileSync(file, 'utf8'));
  const job = parseFixture(text, file) as ReplayJob;
  const { request } = job;
  const report = (event: ReplayEvent): void => {
    if (job.report !== undefined) appendFileSync(job.report, `${JSON.stringify(event)}\n`);
    else if (!('answered' in event))
      diagnostics.warn(`RUNSPAN_REPLAY: ${'stopped' in event ? STOPPED : event.mismatch}`);
    // Meanwhile, the other branches of the program go on. A program without any ends at once.
    if ('stopped' in event) setTimeout(() => process.exit(), LINGER_MS).unref();
  };
  const replay = new FixtureReplay(job, (event) => withoutTracing(() => report(event)));
  return {
    answer: (input, init, send) => replay.answer(input, init, send),
    listening(server) {
      if (request === undefined) return;
      withoutTracing(() => sendTo(server, request, report)).catch((error) =>
        report({ mismatch: `the server has not answered ${request.path}: ${messageOf(error)}` }),
      );
    },
    refuse: (mismatch) => withoutTracing(() => report({ mismatch })),
  };
}

const STOPPED = 'the program is stopped, because it has made a call after the last recorded one';

/** How long a program may run after a call that is not recorded, in milliseconds. */
const LINGER_MS = 2_000;

async function sendTo(
  server: Server,
  { method, path, contentType, body }: RecordedRequest,
  report: (event: ReplayEvent) => void,
): Promise<void> {
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
  const refusal = `the server answered ${method} ${path} with ${response.status}; headers of requests are not recorded`;
  if (response.status === 401 || response.status === 403) report({ mismatch: refusal });
}
