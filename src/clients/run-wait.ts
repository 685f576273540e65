import type { Readable } from 'node:stream';
import { clearTimer, setTimer } from '../base/timers.ts';
import type { OpenAnswer } from '../http/client.ts';
import { DeadlineError, failureOf } from '../http/errors.ts';
import type { Run } from '../run/run.ts';
import { runErrorOf } from './agent-event.ts';
import type { AgentService } from './agent-service.ts';
import { InvalidAnswerError } from './api-error.ts';
import type { Call } from './call.ts';
import { RunFailedError, type RunPlace } from './run-failed-error.ts';
import { placeOf } from './run-stream.ts';
import { StreamError } from './stream-error.ts';
import { tellPlace } from './stream-trace.ts';

/** Bytes of what a run has come to. */
const ANSWER_BYTES_MAX = 64 * 1024 * 1024;

/**
 * Waits for what a run comes to, for as long as it takes: the server keeps the connection with empty lines, and only when nothing
 * comes for the idle time is it given up. A server may also say nothing before the end, so the head has that time as well, unless
 * call or client were given another. `callRun` is that of the call, where it is traced.
 * Rejects with a RunFailedError where the run failed, and with a StreamError that names the run where the answer broke off.
 */
export async function waitForRun<Values>(
  service: AgentService,
  call: Call,
  known: RunPlace,
  callRun: Run | undefined = undefined,
): Promise<Values> {
  const { api, headTimeoutMs } = service;
  const timeoutMs = call.options?.timeoutMs ?? headTimeoutMs;
  const head = await api.open({ ...call, options: { ...call.options, timeoutMs } });
  const place = placeOf(head.headers['content-location'], known);
  if (callRun !== undefined) tellPlace(callRun, place);
  const data = await dataOf(service, call, head, place);
  const error = typeof data === 'object' && data !== null ? (data as { __error__?: unknown }).__error__ : undefined;
  if (error === undefined) return data as Values;
  throw new RunFailedError(place, runErrorOf(error), (text) => api.masked(text, call));
}

async function dataOf({ api, idleTimeoutMs }: AgentService, call: Call, head: OpenAnswer, place: RunPlace) {
  let text: string | undefined;
  try {
    text = await textOf(head.body, idleTimeoutMs);
  } catch (thrown) {
    call.options?.signal?.throwIfAborted();
    const outlook = 'the run may go on; join it to wait for it again';
    const broken = { ...place, lastEvent: undefined, problem: failureOf(thrown).detail, outlook };
    throw new StreamError(api.factsOf(call), broken, { cause: thrown });
  }
  if (text === undefined)
    throw new InvalidAnswerError(api.factsOf(call), head, `is longer than ${ANSWER_BYTES_MAX} bytes`);
  try {
    return JSON.parse(text) as unknown;
  } catch {
    throw new InvalidAnswerError(api.factsOf(call), head, 'is no JSON');
  }
}

/** The text of a body that may take long, without the empty lines ahead; undefined where it is too long. */
async function textOf(body: Readable, idleTimeoutMs: number): Promise<string | undefined> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  const arm = () =>
    setTimer(() => body.destroy(new DeadlineError(`nothing came for ${idleTimeoutMs} ms`)), idleTimeoutMs);
  let timer = arm();
  try {
    for await (const chunk of body as AsyncIterable<Uint8Array>) {
      clearTimer(timer);
      timer = arm();
      // A run of days would otherwise leave a line for each second.
      const isBlank = bytes === 0 && chunk.every((byte) => byte === 0x0a || byte === 0x0d || byte === 0x20);
      if (isBlank) continue;
      chunks.push(chunk);
      bytes += chunk.length;
      if (bytes > ANSWER_BYTES_MAX) return undefined;
    }
  } finally {
    clearTimer(timer);
  }
  return Buffer.concat(chunks).toString('utf8');
}
