import { appendFileSync, readFileSync } from 'node:fs';
import type { FetchTransport } from '../integrations/fetch/record-fetch.ts';
import { withoutTracing } from '../platform/suppress-tracing.ts';
import { type Fixture, parseFixture } from './fixture.ts';
import { Replay, type ReplayEvent } from './replay.ts';

/** The content of the file that `RUNSPAN_REPLAY` names. */
export interface ReplayJob extends Fixture {
  /** Requests from the one with this number are sent. */
  readonly liveFrom?: number | undefined;
  /** The file to which each event is added, as a line of JSON. Absent if nobody reads the events. */
  readonly report?: string | undefined;
}

/**
 * Returns the function that answers the model calls of this process. When the recorded trace has ended, the process
 * ends too. Throws if the file cannot be read.
 */
export function replayOf(file: string): FetchTransport {
  const job = parseFixture(
    withoutTracing(() => readFileSync(file, 'utf8')),
    file,
  ) as ReplayJob;
  const { report, liveFrom } = job;
  const replay = new Replay(job, liveFrom, (event: ReplayEvent) => {
    if (report !== undefined) withoutTracing(() => appendFileSync(report, `${JSON.stringify(event)}\n`));
    if ('ended' in event) process.exit();
  });
  return (input, init, send) => replay.answer(input, init, send);
}
