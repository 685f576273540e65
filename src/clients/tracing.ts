import { traceable } from '../instrument/traceable.ts';
import { currentContext } from '../run/context/current.ts';
import { toHeaders } from '../run/propagation/propagation.ts';
import type { Run } from '../run/run.ts';
import { currentRun, startRun, withRun } from '../run/start-run.ts';
import { StreamTrace } from './agent-server/streams/stream-trace.ts';

// The clients use tracing only through this file. Browser builds replace it with `tracing.browser.ts`.

export { recordPlace } from './agent-server/streams/stream-trace.ts';

/** Describes how to record a call as a run. The inputs and outputs must not contain API keys or secrets. */
interface CallRun<Result> {
  readonly name: string;
  readonly runType: 'chain' | 'tool';
  readonly inputs: () => Record<string, unknown>;
  /** @default the result of the call */
  readonly outputs?: (result: Result) => Record<string, unknown>;
}

/** Records a call as a child of the current run. Without a current run, the call is not recorded. */
export function tracedCall<Result>(
  { name, runType, inputs, outputs }: CallRun<Result>,
  call: (run: Run | undefined) => Promise<Result>,
): Promise<Result> {
  if (!isInRun()) return call(currentRun());
  const recorded = outputs && { outputs: (result: unknown) => outputs(result as Result) };
  return traceable(() => call(currentRun()), { name, runType, inputs, ...recorded })();
}

/**
 * Opens a stream and records it as a child of the current run until the stream ends. The run's outputs are the last
 * state, or the list of events if no state arrives. Payload size limits apply. Without a current run, the stream is not
 * recorded.
 */
export async function tracedStream<Stream>(
  name: string,
  inputs: Record<string, unknown>,
  open: (trace: StreamTrace | undefined) => Promise<Stream>,
): Promise<Stream> {
  if (!isInRun()) return open(undefined);
  const run = startRun({ name, runType: 'chain', inputs });
  try {
    return await withRun(run, () => open(new StreamTrace(run, name)));
  } catch (thrown) {
    run.fail(thrown);
    throw thrown;
  }
}

/** Returns the trace headers of the current run. The trace is sent in two headers, because servers read either one. */
export function traceHeaders(headers: Readonly<Record<string, string>>): Record<string, string> {
  if (!isInRun()) return {};
  const all = toHeaders(undefined, headers);
  const order = all['runspan-trace'];
  if (order === undefined) return {};
  const [baggage] = Object.entries(all).filter(([name]) => name.toLowerCase() === 'baggage');
  return { 'runspan-trace': order, 'langsmith-trace': order, ...(baggage && { baggage: baggage[1] }) };
}

/** Returns whether there is a current run. A client never starts a trace by itself. */
function isInRun(): boolean {
  return currentContext()?.id !== undefined;
}
