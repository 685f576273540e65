import { type Context, Hono } from 'hono';
import type { ThreadStates } from '../protocol/thread-state.ts';
import { FEEDBACK_KEYS, type TraceService } from '../tracing/trace-service.ts';
import { fault } from './fault.ts';

/** What the page shows of the model that answers. */
export interface ModelFacts {
  readonly name: string;
  /** Whether it is the one without a model. */
  readonly is_local: boolean;
}

export interface TraceRouteParts {
  /** The name of the agent. */
  readonly agent: string;
  readonly model: ModelFacts;
  readonly states: ThreadStates;
  /** Without it there are no traces, and nothing to rate. */
  readonly traces: TraceService | undefined;
}

/** What the page asks for beside the protocol. */
export function traceRoutes({ agent, model, states, traces }: TraceRouteParts): Hono {
  const app = new Hono();
  app.get('/info', (context) =>
    context.json({
      agent,
      model,
      tracing: { is_on: traces !== undefined, viewer_url: traces?.viewerUrl ?? null },
      feedback_keys: traces === undefined ? [] : FEEDBACK_KEYS,
    }),
  );
  if (traces === undefined) return app;

  app.post('/threads/:thread_id/runs/:run_id/feedback', async (context) => {
    const { thread_id: threadId, run_id: runId } = context.req.param();
    if ((await states.traceOf(threadId, runId)) === undefined) return unknownRun(context, threadId, runId);
    return relayed(context, async () => context.json({ urls: await traces.feedbackUrls(runId) }));
  });
  return app;
}

function unknownRun(context: Context, threadId: string, runId: string): Response {
  return context.json(fault('no_such_run', `Thread ${threadId} has no run ${runId}.`), 404);
}

/** What the service for traces fails with is no failure of this one. */
async function relayed(context: Context, answer: () => Promise<Response>): Promise<Response> {
  try {
    return await answer();
  } catch (error) {
    return context.json(fault('bad_gateway', `The service for traces failed: ${(error as Error).message}`), 502);
  }
}
