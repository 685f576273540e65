import type { IncomingMessage, ServerResponse } from 'node:http';
import { onTestFinished } from 'vitest';
import { AgentServer, type AgentServerOptions } from '#src/clients.ts';
import { serve } from '../http/server.ts';
import { virtualClock } from '../support/virtual-clock.ts';

export type Step = (response: ServerResponse, request: IncomingMessage) => void;

export const status =
  (code: number, headers: Record<string, string> = {}, text = '{"detail":"not now"}'): Step =>
  (response) =>
    response.writeHead(code, { 'content-type': 'application/json', ...headers }).end(text);
export const reset: Step = (_, { socket }) => socket.resetAndDestroy();

export const KEY = 'lsv2_agent_key_1';

/**
 * Returns a client of a server that handles each request by the next step. The last step repeats. `open` has the
 * responses that have not ended.
 */
export async function script(steps: readonly Step[], options: Partial<AgentServerOptions> = {}) {
  let count = 0;
  const open = new Set<ServerResponse>();
  const served = await serve((request, response) => {
    open.add(response);
    response.on('close', () => open.delete(response));
    const step = steps[Math.min(count++, steps.length - 1)] as Step;
    step(response, request);
  });
  const client = new AgentServer({ url: served.url, apiKey: KEY, ...options });
  onTestFinished(() => client.close());
  const asked = () => served.seen.map(({ method, url }) => `${method} ${url}`);
  return { ...served, open, client, asked };
}

/** Advances the clock until the promise settles. */
export async function settled<Result>(promise: Promise<Result>, stepMs = 500): Promise<PromiseSettledResult<Result>> {
  let result: PromiseSettledResult<Result> | undefined;
  void Promise.allSettled([promise]).then(([one]) => {
    result = one;
  });
  while (result === undefined) {
    // Data on the wire arrives before the clock advances.
    for (let turn = 0; turn < 20; turn++) await new Promise(setImmediate);
    if (result === undefined) await virtualClock.advance(stepMs);
  }
  return result;
}
