import { type Context, Hono } from 'hono';
import type { CommandResponse, Commands } from '../runs/commands.ts';
import { plainJson } from '../runs/messages.ts';
import type { Runs } from '../runs/runs.ts';
import type { ThreadStates } from '../runs/thread-states.ts';
import type { Storage } from '../storage/storage.ts';
import type { TraceService } from '../traces.ts';
import { errorBody, RETRY_LATER } from './errors.ts';
import { eventStream } from './event-stream.ts';
import {
  bodyOf,
  COMMAND,
  HISTORY,
  InvalidRequestError,
  numberOf,
  optionalBody,
  STATE_UPDATE,
  SUBSCRIPTION,
} from './requests.ts';

const LIST_THREADS = 100;
const ID = /^[\w.:~-]{1,128}$/;

export interface RouteParts {
  readonly commands: Commands;
  readonly runs: Runs;
  readonly states: ThreadStates;
  readonly storage: Storage;
  readonly mask: (text: string) => string;
  /** Closes the open streams. */
  readonly end: AbortSignal;
  /** Undefined if the agent is not traced. */
  readonly traces: TraceService | undefined;
  /** The response of `GET /info`. */
  readonly info: object;
}

/** The end points of the protocol, and those that the page needs in addition. */
export function routes(parts: RouteParts): Hono {
  const app = new Hono();
  app.use('/threads/:thread_id/*', checkId);
  app.use('/threads/:thread_id', checkId);
  app.get('/info', (context) => context.json(parts.info));
  addRunRoutes(app, parts);
  addThreadRoutes(app, parts);
  return app;
}

function addRunRoutes(app: Hono, { commands, runs, states, storage, mask, end, traces }: RouteParts): void {
  const { store } = storage;

  app.post('/threads/:thread_id/commands', async (context) => {
    const command = await bodyOf(context, COMMAND).catch((error: unknown) => {
      if (error instanceof InvalidRequestError) return error;
      throw error;
    });
    if (command instanceof InvalidRequestError) {
      const { message, detail } = command;
      return context.json({ type: 'error', id: null, error: 'invalid_argument', message, detail }, 422);
    }
    const response: CommandResponse = await commands.execute(threadOf(context), command, context.req.raw.headers);
    const isUnavailable = response.type === 'error' && response.error === 'unavailable';
    return isUnavailable ? context.json(response, 503, RETRY_LATER) : context.json(response);
  });

  app.on('POST', ['/threads/:thread_id/stream', '/threads/:thread_id/stream/events'], async (context) => {
    const body = await bodyOf(context, SUBSCRIPTION);
    const lastId = Number(context.req.header('last-event-id') ?? 0);
    const since = body.since ?? (Number.isSafeInteger(lastId) && lastId > 0 ? lastId : undefined);
    const subscription = { ...body, since };
    return new Response(eventStream({ store, states, mask, threadId: threadOf(context), subscription, end }), {
      // A proxy that collects responses would delay the events.
      headers: {
        'content-type': 'text/event-stream',
        'cache-control': 'no-cache, no-transform',
        'x-accel-buffering': 'no',
      },
    });
  });

  app.post('/threads/:thread_id/runs/:run_id/cancel', async (context) => {
    const runId = context.req.param('run_id');
    if (ID.test(runId) && (await runs.cancel(threadOf(context), runId))) return context.json({}, 202);
    return unknownRun(context, 'in progress');
  });

  app.post('/threads/:thread_id/runs/:run_id/feedback', async (context) => {
    const runId = context.req.param('run_id');
    if (traces === undefined || !(await states.hasRun(threadOf(context), runId)))
      return unknownRun(context, 'with a trace');
    try {
      return context.json({ urls: await traces.feedbackUrls(runId) });
    } catch (error) {
      return context.json(errorBody('bad_gateway', `The trace service failed: ${(error as Error).message}`), 502);
    }
  });
}

function addThreadRoutes(app: Hono, { runs, states, storage, mask }: RouteParts): void {
  const { store, checkpointer } = storage;
  const json = (value: unknown): Response =>
    new Response(mask(plainJson(value)), { headers: { 'content-type': 'application/json' } });

  app.get('/threads/:thread_id/state', async (context) => {
    const state = await states.get(threadOf(context));
    return state === undefined ? unknownThread(context) : json(state);
  });

  app.post('/threads/:thread_id/state', async (context) => {
    const update = await optionalBody(context, STATE_UPDATE);
    const threadId = threadOf(context);
    const [active] = await store.runs(threadId);
    if (active !== undefined)
      return context.json(errorBody('conflict', `Run ${active.id} of thread ${threadId} is in progress.`), 409);
    const state = await states.update(threadId, update);
    await store.touch(threadId);
    return json(state);
  });

  app.post('/threads/:thread_id/history', async (context) => {
    const history = await states.history(threadOf(context), await bodyOf(context, HISTORY));
    return history === undefined ? unknownThread(context) : json(history);
  });

  app.get('/threads', async (context) => {
    const limit = numberOf(context, 'limit', 1, LIST_THREADS, LIST_THREADS);
    const threads = await store.threads(limit, numberOf(context, 'offset', 0, Number.MAX_SAFE_INTEGER, 0));
    return context.json(threads.map((thread) => ({ ...thread, title: thread.title || 'New conversation' })));
  });

  app.delete('/threads/:thread_id', async (context) => {
    const threadId = threadOf(context);
    await runs.endAll(threadId);
    await store.deleteThread(threadId);
    await checkpointer.deleteThread(threadId);
    return context.body(null, 204);
  });
}

async function checkId(context: Context, next: () => Promise<void>): Promise<Response | undefined> {
  const id = threadOf(context);
  if (ID.test(id)) {
    await next();
    return undefined;
  }
  const msg = 'Expected 1 to 128 letters, digits or any of - _ . : ~';
  const problem = { loc: ['path', 'thread_id'], msg, type: 'string_pattern_mismatch', input: id.slice(0, 200) };
  return context.json({ detail: [problem], message: msg }, 422);
}

function threadOf(context: Context): string {
  return context.req.param('thread_id') ?? '';
}

function unknownThread(context: Context): Response {
  return context.json(errorBody('not_found', `Thread ${threadOf(context)} not found`), 404);
}

function unknownRun(context: Context, kind: string): Response {
  const message = `Thread ${threadOf(context)} has no run ${context.req.param('run_id')} ${kind}.`;
  return context.json(errorBody('no_such_run', message), 404);
}
