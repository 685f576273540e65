import { failureOf } from '../../http/errors.ts';
import { ANSWER_BYTES_MAX, parseBody, readText } from '../body.ts';
import { type Arguments, callOf, type Endpoint } from '../endpoint.ts';
import { runErrorOf } from './agent-event.ts';
import type { AgentService } from './agent-service.ts';
import { RunFailedError, StreamError } from './errors.ts';
import { placeOf } from './run-stream.ts';
import { recordPlace } from './stream-trace.ts';

/**
 * Waits for the result of a run, without a time limit. The server keeps the connection alive with empty lines, and the
 * wait fails after `idleTimeoutMs` without a byte. The response headers may arrive with the result, so that timeout also
 * applies to the headers, unless the call or the client has a `timeoutMs`. Rejects with a RunFailedError if the run
 * fails, and with a StreamError if the response breaks off.
 */
export async function waitForRun<Values>(service: AgentService, endpoint: Endpoint, args: Arguments): Promise<Values> {
  const call = callOf(endpoint, args);
  const { api, idleTimeoutMs, headTimeoutMs } = service;
  const known = { runId: call.ids.run_id, threadId: call.ids.thread_id };
  const wait = async (headers: Record<string, string>, record?: Parameters<typeof recordPlace>[0]): Promise<Values> => {
    const options = { ...call.options, timeoutMs: call.options?.timeoutMs ?? headTimeoutMs };
    const head = await api.open({ ...call, headers, options });
    const place = placeOf(head.headers['content-location'], known);
    if (record !== undefined) recordPlace(record, place);
    const text = await readText(head.body, { idleTimeoutMs, bytesMax: ANSWER_BYTES_MAX }).catch((thrown: unknown) => {
      call.options?.signal?.throwIfAborted();
      const outlook = 'the run may still be running; join it to wait for it again';
      const broken = { ...place, lastEvent: undefined, problem: failureOf(thrown).detail, outlook };
      throw new StreamError(api.factsOf(call), broken, { cause: thrown });
    });
    const { data, problem } = parseBody('any', text, head.headers);
    if (problem !== undefined || text === '') throw api.invalidAnswer(call, head, problem ?? 'is not JSON');
    const error = typeof data === 'object' && data !== null ? (data as { __error__?: unknown }).__error__ : undefined;
    if (error === undefined) return data as Values;
    throw new RunFailedError(place, runErrorOf(error), (shown) => api.masked(shown, call));
  };
  return endpoint.makesRun ? service.traced(call, wait) : wait({});
}
