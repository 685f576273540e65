import { setMaxListeners } from 'node:events';
import { Hono } from 'hono';
import { bodyLimit } from 'hono/body-limit';
import { METHOD_NAME_ALL } from 'hono/router';
import { closingError, methodError, RequestError, toRequestError } from './errors.ts';
import { Commands } from './http/commands.ts';
import { allowHosts, pageRoutes } from './http/host.ts';
import { threadRoutes } from './http/routes.ts';
import { ThreadStates } from './http/thread-states.ts';
import type { Agent, Handlers } from './runs/run.ts';
import { Runs } from './runs/runs.ts';
import type { ChatStorage } from './storage/storage.ts';
import type { TraceService } from './traces.ts';

const BODY_BYTES_MAX = 4 * 1024 * 1024;

export interface ChatOptions {
  /** A compiled graph whose checkpointer is `storage.checkpointer` and whose state contains `messages`. */
  readonly agent: Agent;
  readonly storage: ChatStorage;
  /** Callback handlers that receive the agent's events, for example to trace it. @default none */
  readonly callbacks?: Handlers;
  /** Service that stores the traces. @default no trace links and no ratings */
  readonly traces?: TraceService | undefined;
  /** The model to show on the page. @default none */
  readonly model?: { readonly name: string; readonly is_local: boolean };
  /**
   * Host names that requests may use in addition to the machine's own (`localhost`, `127.0.0.1`, `[::1]`), for example
   * the public host name. Requests for any other host name get 403. @default none
   */
  readonly allowedHosts?: readonly string[];
  /**
   * Whether a run joins the trace that the `runspan-trace` header of its request names. Enable this only if all callers
   * are your own services, because any caller can then have its runs recorded regardless of the sampling rate. @default
   * false
   */
  readonly joinTraces?: boolean;
  /** Folder that contains the built page. @default no page */
  readonly page?: string;
  /** Texts to mask in responses and events, such as keys. @default none */
  readonly secrets?: readonly (string | undefined)[];
  /** Called with a line for each error that does not belong to a request. @default writes the line to stderr */
  readonly log?: (line: string) => void;
}

/** A chat that handles standard `Request` objects. A host passes each request to `chat.app.fetch`. */
export interface Chat {
  readonly app: Hono;
  /** Ends the runs in this process, then ends the open streams and closes the storage. */
  close(): Promise<void>;
}

/** Creates a chat from its parts. If an option is invalid, rejects with an error that names it. */
export async function createChat(options: ChatOptions): Promise<Chat> {
  const { agent, storage, callbacks = [], traces, model = { name: '', is_local: false }, joinTraces = false } = options;
  const mask = maskOf(options.secrets ?? []);
  const write = options.log ?? ((line: string) => void process.stderr.write(`chat: ${line}\n`));
  const log = (line: string): void => write(mask(line));
  checkAgent(agent, storage);
  const hostCheck = allowHosts(options.allowedHosts ?? []);
  const runs = new Runs({ agent, store: storage.store, callbacks, joinTraces, log });
  await runs.beat();
  const streams = new AbortController();
  setMaxListeners(0, streams.signal);
  let isClosing = false;

  const app = new Hono();
  app.onError((error, { req, json }) => {
    const { status, body, headers } = toRequestError(error, `${req.method} ${req.path}`, log);
    return json(body, status, headers);
  });
  app.notFound(({ req }) => {
    const allowed = methodsOf(app, req.path);
    if (allowed.length > 0) throw methodError(req.path, req.method, allowed);
    throw new RequestError('not_found', `${req.method} ${req.path} does not exist.`, 404);
  });
  app.use((_, next) => {
    if (isClosing) throw closingError();
    return next();
  });
  app.use(hostCheck);
  app.use(
    bodyLimit({
      maxSize: BODY_BYTES_MAX,
      onError: ({ header }) => {
        // The connection cannot be reused, because the rest of the body is not read.
        header('connection', 'close');
        throw new RequestError('too_large', `A request body can have at most ${BODY_BYTES_MAX} bytes.`, 413);
      },
    }),
  );
  app.get('/api/info', ({ json }) =>
    json({
      agent: agent.name ?? 'agent',
      model,
      tracing: { is_on: traces !== undefined, viewer_url: traces?.viewerUrl ?? null },
      feedback_keys: traces?.feedbackKeys ?? [],
    }),
  );
  const states = new ThreadStates(agent);
  const commands = new Commands(agent, runs);
  app.route('/api/threads', threadRoutes({ commands, runs, states, storage, mask, log, end: streams.signal, traces }));
  if (options.page !== undefined) app.route('/', pageRoutes(options.page, traces?.origin));
  return {
    app,
    close: async () => {
      isClosing = true;
      await runs.close();
      streams.abort();
      await storage.store.close();
    },
  };
}

/** Returns the methods that the routes of a path accept. */
function methodsOf({ router, routes }: Hono, path: string): string[] {
  const methods = new Set(routes.map(({ method }) => method));
  // Middleware is registered for all methods.
  methods.delete(METHOD_NAME_ALL);
  return [...methods].filter((method) => {
    const [handlers] = router.match(method, path);
    return handlers.some(([[, route]]) => route.method === method);
  });
}

/** Minimum length of a secret to mask. Shorter texts would also match parts of words. */
const SECRET_CHARS_MIN = 6;

/**
 * Returns a function that masks secrets in a text. Providers and databases sometimes repeat secrets in their errors.
 */
function maskOf(secrets: readonly (string | undefined)[]): (text: string) => string {
  const masked = secrets.filter((secret) => secret !== undefined && secret.length >= SECRET_CHARS_MIN) as string[];
  // Longer secrets are replaced first, because one secret may begin with another.
  masked.sort((one, other) => other.length - one.length);
  return (text) => masked.reduce((rest, secret) => rest.replaceAll(secret, '[Redacted]'), text);
}

function checkAgent(agent: Agent, storage: ChatStorage): void {
  if ('checkpointer' in agent && agent.checkpointer !== storage.checkpointer)
    throw new Error(
      'Expected the agent to use the checkpointer of the storage: { checkpointer: storage.checkpointer }.',
    );
  if (agent.channels !== undefined && !Object.hasOwn(agent.channels, 'messages'))
    throw new Error('Expected the state of the agent to have `messages`, as in MessagesAnnotation.');
}
