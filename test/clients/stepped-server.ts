import type { IncomingMessage, ServerResponse } from 'node:http';
import { afterEach, beforeAll, beforeEach, vi } from 'vitest';
import { serve, type TestServer } from '../http/server.ts';
import { virtualClock } from '../support/virtual-clock.ts';

/** Handles one request. */
export type Step = (response: ServerResponse, request: IncomingMessage) => void;

export const status =
  (code: number, headers: Record<string, string> = {}, text = '{"detail":"not now"}'): Step =>
  (response) =>
    response.writeHead(code, { 'content-type': 'application/json', ...headers }).end(text);
export const reset: Step = (_, { socket }) => socket.resetAndDestroy();

export interface SteppedServer extends TestServer {
  /** Responses that have not ended. */
  readonly open: ReadonlySet<ServerResponse>;
}

/** A server that handles each request by the next step. The last step repeats. */
export async function serveSteps(steps: readonly Step[]): Promise<SteppedServer> {
  let count = 0;
  const open = new Set<ServerResponse>();
  const served = await serve((request, response) => {
    open.add(response);
    response.on('close', () => open.delete(response));
    const step = steps[Math.min(count++, steps.length - 1)] as Step;
    step(response, request);
  });
  return { ...served, open };
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

/** Resets the clock before each test and makes random delays constant. */
export function startAlike(): void {
  // The first request would load undici, which takes real time.
  beforeAll(() => import('undici'));
  beforeEach(() => {
    virtualClock.reset();
    vi.spyOn(Math, 'random').mockReturnValue(0.5);
  });
  afterEach(() => {
    vi.restoreAllMocks();
  });
}
