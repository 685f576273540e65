import { type Context, Hono } from 'hono';
import type { CommandAnswer, Commands } from '../protocol/commands.ts';
import { plainJson } from '../protocol/plain-json.ts';
import type { Runs } from '../protocol/runs.ts';
import { StateUpdateError, type ThreadStates } from '../protocol/thread-state.ts';
import type { Storage } from '../storage/storage.ts';
import { bodyOf, COMMAND, HISTORY, InvalidBodyError, optionalBodyOf, STATE_UPDATE, SUBSCRIPTION } from './bodies.ts';
import { eventStream } from './event-stream.ts';
import { fault, RETRY_LATER } from './fault.ts';

const LIST_LIMIT = 100;
/** The names at its end are those by which objects are extended, and no store is to take them for a thread. */
const ID = /^(?!(__proto__|constructor|prototype)$)[\w.:~-]{1,128}$/;

export interface RouteParts {
  readonly commands: Commands;
  readonly runs: Runs;
  readonly states: ThreadStates;
  readonly storage: Storage;
  /** Ends the streams that are open. */
  readonly end: AbortSignal;
}

/** The end points of the protocol, as handlers of standard requests. */
export function protocolRoutes({ commands, runs, states, storage, end }: RouteParts): Hono {
  const app = new Hono();
  app.use('/threads/:thread_id/*', checkId);
  app.use('/threads/:thread_id', checkId);

  app.post('/threads/:thread_id/commands', async (context) => {
    const command = await bodyOf(context, COMMAND).catch((error: unknown) => {
      if (error instanceof InvalidBodyError) return error;
      throw error;
    });
    if (command instanceof InvalidBodyError) {
      // Clients of the protocol read the message, others the list.
      const { message, detail } = command;
      const answer: CommandAnswer = { type: 'error', id: null, error: 'invalid_argument', message };
      return context.json({ ...answer, detail }, 422);
    }
    const answer = await commands.answer(threadOf(context), command, context.req.raw.headers);
    const isAway = answer.type === 'error' && answer.error === 'unavailable';
    return isAway ? context.json(answer, 503, RETRY_LATER) : context.json(answer);
  });

  app.on('POST', ['/threads/:thread_id/stream', '/threads/:thread_id/stream/events'], async (context) => {
    const body = await bodyOf(context, SUBSCRIPTION);
    const lastId = Number(context.req.header('last-event-id') ?? Number.NaN);
    const since = body.since ?? (Number.isSafeInteger(lastId) && lastId > 0 ? lastId : undefined);
    return new Response(eventStream(storage.sessions, threadOf(context), { ...body, since }, end), {
      headers: {
        'content-type': 'text/event-stream',
        'cache-control': 'no-cache, no-transform',
        // Proxies that gather answers would hold the events back.
        'x-accel-buffering': 'no',
      },
    });
  });

  app.get('/threads/:thread_id/state', async (context) => {
    const state = await states.get(threadOf(context));
    return state === undefined ? unknownThread(context) : plain(state);
  });

  app.post('/threads/:thread_id/state', async (context) => {
    const update = await optionalBodyOf(context, STATE_UPDATE);
    const threadId = threadOf(context);
    const active = await storage.sessions.activeRun(threadId);
    if (active !== undefined)
      return context.json(fault('conflict', `Thread ${threadId} has the run ${active} under way.`), 409);
    try {
      const state = await states.update(threadId, update);
      await storage.threads.touch({ id: threadId, title: '', updatedAt: new Date().toISOString() });
      return plain(state);
    } catch (error) {
      if (!(error instanceof StateUpdateError)) throw error;
      return context.json(fault('invalid_state_update', error.message), 422);
    }
  });

  app.post('/threads/:thread_id/history', async (context) => {
    const states_ = await states.history(threadOf(context), await bodyOf(context, HISTORY));
    return states_ === undefined ? unknownThread(context) : plain(states_);
  });

  app.get('/threads', async (context) => {
    const [limit, offset] = [
      wholeOf(context, 'limit', 1, LIST_LIMIT) ?? LIST_LIMIT,
      wholeOf(context, 'offset', 0, Number.MAX_SAFE_INTEGER) ?? 0,
    ];
    const threads = await storage.threads.list(limit, offset);
    return context.json(threads.map((thread) => ({ ...thread, title: thread.title || 'New conversation' })));
  });

  app.delete('/threads/:thread_id', async (context) => {
    const threadId = threadOf(context);
    await runs.endAll(threadId);
    await storage.sessions.delete(threadId);
    await storage.checkpointer.deleteThread(threadId);
    await storage.threads.delete(threadId);
    return context.body(null, 204);
  });

  app.post('/threads/:thread_id/runs/:run_id/cancel', async (context) => {
    const runId = context.req.param('run_id');
    const isCancelled = ID.test(runId) && (await runs.cancel(threadOf(context), runId));
    return isCancelled
      ? context.json({}, 202)
      : context.json(fault('no_such_run', `Thread ${threadOf(context)} has no run ${runId} under way.`), 404);
  });
  return app;
}

async function checkId(context: Context, next: () => Promise<void>): Promise<Response | undefined> {
  const id = context.req.param('thread_id') ?? '';
  if (ID.test(id)) {
    await next();
    return undefined;
  }
  const detail = [
    {
      loc: ['path', 'thread_id'],
      msg: 'Expected 1 to 128 letters, digits or any of - _ . : ~',
      type: 'string_pattern_mismatch',
      input: id.slice(0, 200),
    },
  ];
  return context.json({ detail, message: detail[0]?.msg }, 422);
}

function threadOf(context: Context): string {
  return context.req.param('thread_id') ?? '';
}

function wholeOf(context: Context, name: string, min: number, max: number): number | undefined {
  const text = context.req.query(name);
  if (text === undefined) return undefined;
  const value = Number(text);
  if (/^\d+$/.test(text) && value >= min && value <= max) return value;
  throw new InvalidBodyError([
    { loc: ['query', name], msg: `Expected a whole number from ${min} to ${max}`, type: 'int_parsing' },
  ]);
}

function unknownThread(context: Context): Response {
  return context.json(fault('not_found', `Thread ${threadOf(context)} not found`), 404);
}

function plain(value: unknown): Response {
  return new Response(plainJson(value), { headers: { 'content-type': 'application/json' } });
}
