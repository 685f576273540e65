import { type Context, Hono } from 'hono';
import { RequestError, toRequestError } from '../errors.ts';
import { plainJson } from '../runs/messages.ts';
import type { Runs } from '../runs/runs.ts';
import type { ChatStorage } from '../storage/storage.ts';
import type { TraceService } from '../traces.ts';
import type { Commands } from './commands.ts';
import { eventStream } from './event-stream.ts';
import { bodyOf, COMMAND, HISTORY, PAGE, parsed, STATE_UPDATE, SUBSCRIPTION } from './requests.ts';
import type { ThreadStates } from './thread-states.ts';

const THREAD_ID = /^[\w.:~-]{1,128}$/;
const RUN = '/:thread_id/runs/:run_id{[\\w.:~-]{1,128}}';

export interface RouteParts {
  readonly commands: Commands;
  readonly runs: Runs;
  readonly states: ThreadStates;
  readonly storage: ChatStorage;
  /** Masks secrets in a text. */
  readonly mask: (text: string) => string;
  readonly log: (line: string) => void;
  /** Signal that closes all open streams. */
  readonly end: AbortSignal;
  /** Service that stores the traces. Undefined if the agent is not traced. */
  readonly traces: TraceService | undefined;
}

/** The end points of a thread, and the list of threads. */
export function threadRoutes(parts: RouteParts): Hono {
  const { runs, states, storage, mask, traces } = parts;
  const { store, checkpointer } = storage;
  const json = (value: unknown): Response =>
    new Response(mask(plainJson(value)), { headers: { 'content-type': 'application/json' } });
  const app = new Hono();

  app.get('/', async (context) => {
    const { limit, offset } = parsed(PAGE, context.req.query(), 'query');
    const threads = await store.threads(limit, offset);
    return context.json(threads.map((thread) => ({ ...thread, title: thread.title || 'New conversation' })));
  });

  app.use('/:thread_id/*', checkId);

  app.delete('/:thread_id', async (context) => {
    const threadId = context.req.param('thread_id');
    await runs.endAll(threadId);
    await store.deleteThread(threadId);
    await checkpointer.deleteThread(threadId);
    return context.body(null, 204);
  });

  app.post('/:thread_id/commands', (context) => commandResponse(context, parts));

  app.on('POST', ['/:thread_id/stream', '/:thread_id/stream/events'], (context) => streamResponse(context, parts));

  app.get('/:thread_id/state', async (context) => json(await states.get(context.req.param('thread_id'))));

  app.post('/:thread_id/state', async (context) => {
    const threadId = context.req.param('thread_id');
    const update = await bodyOf(context, STATE_UPDATE);
    const [active] = await store.runs(threadId);
    if (active !== undefined)
      throw new RequestError('conflict', `Run ${active.id} of thread ${threadId} is in progress.`, 409);
    const state = await states.update(threadId, update);
    await store.touch(threadId);
    return json(state);
  });

  app.post('/:thread_id/history', async (context) =>
    json(await states.history(context.req.param('thread_id'), await bodyOf(context, HISTORY))),
  );

  app.post(`${RUN}/cancel`, async (context) => {
    const { thread_id, run_id } = context.req.param();
    if (!(await runs.cancel(thread_id, run_id))) throw unknownRun(thread_id, run_id, 'in progress');
    return context.json({}, 202);
  });

  app.post(`${RUN}/feedback`, async (context) => {
    const { thread_id, run_id } = context.req.param();
    if (traces === undefined || !(await states.hasRun(thread_id, run_id)))
      throw unknownRun(thread_id, run_id, 'with a trace');
    const urls = await traces.feedbackUrls(run_id).catch((error: Error) => {
      throw new RequestError('bad_gateway', `The trace service failed: ${error.message}`, 502);
    });
    return context.json({ urls });
  });

  return app;
}

async function commandResponse(context: Context, { commands, log }: RouteParts): Promise<Response> {
  const threadId = context.req.param('thread_id') ?? '';
  let id: number | null = null;
  try {
    const { method, params, ...command } = await bodyOf(context, COMMAND);
    id = command.id;
    const run = await commands.execute(threadId, method, params ?? {}, context.req.raw.headers);
    const meta = { thread_id: threadId, trace_id: run.traceId, applied_through_seq: run.afterSeq };
    return context.json({ type: 'success', id, result: { run_id: run.runId }, meta });
  } catch (error) {
    const refusal = toRequestError(error, `a command in thread ${threadId}`, log);
    // The protocol requires status 200 for a command that cannot be executed.
    const status = id === null || refusal.status === 503 ? refusal.status : 200;
    return context.json({ type: 'error', id, ...refusal.body }, status, refusal.headers);
  }
}

async function streamResponse(context: Context, { storage, ...parts }: RouteParts): Promise<Response> {
  const threadId = context.req.param('thread_id') ?? '';
  const subscription = await bodyOf(context, SUBSCRIPTION);
  const lastId = Number(context.req.header('last-event-id') ?? 0);
  const since = subscription.since ?? (Number.isSafeInteger(lastId) ? lastId : 0);
  const events = eventStream({ ...parts, store: storage.store, threadId, subscription, since });
  return new Response(events, {
    headers: {
      'content-type': 'text/event-stream',
      'cache-control': 'no-cache, no-transform',
      // Prevents proxies from buffering events.
      'x-accel-buffering': 'no',
    },
  });
}

async function checkId(context: Context, next: () => Promise<void>): Promise<void> {
  const id = context.req.param('thread_id') ?? '';
  if (THREAD_ID.test(id)) return next();
  const msg = 'Expected 1 to 128 letters, digits or any of - _ . : ~';
  const loc = ['path', 'thread_id'];
  throw new RequestError('invalid_argument', msg, 422, [{ loc, msg, type: 'string_pattern_mismatch' }]);
}

function unknownRun(threadId: string, runId: string, kind: string): RequestError {
  return new RequestError('no_such_run', `Thread ${threadId} has no run ${runId} ${kind}.`, 404);
}
