import { setMaxListeners } from 'node:events';
import { Hono } from 'hono';
import { allowedHosts } from './http/allowed-hosts.ts';
import { limitedBodies } from './http/body-limit.ts';
import { fault, faultAnswer } from './http/fault.ts';
import { pageRoutes } from './http/page-routes.ts';
import { protocolRoutes } from './http/protocol-routes.ts';
import { type ModelFacts, traceRoutes } from './http/trace-routes.ts';
import type { Agent, Handlers } from './protocol/agent.ts';
import { Commands } from './protocol/commands.ts';
import { withRuns } from './protocol/run-checkpoints.ts';
import { Runs } from './protocol/runs.ts';
import { ThreadStates } from './protocol/thread-state.ts';
import type { Storage } from './storage/storage.ts';
import type { TraceService } from './tracing/trace-service.ts';

export interface ChatOptions {
  readonly agent: Agent;
  readonly storage: Storage;
  /** Told of everything that the agent does. */
  readonly callbacks?: Handlers;
  /** Where the agent is traced; without it there is nothing to rate, and no link to a trace. */
  readonly traces?: TraceService | undefined;
  /** What the page says of the model. @default nothing */
  readonly model?: ModelFacts;
  /**
   * Host names that requests may use in addition to the machine's own names (`localhost`, `127.0.0.1`, `[::1]`), for example the host name of the public
   * address. Requests with any other host name get 403. @default none
   */
  readonly allowedHosts?: readonly string[];
  /**
   * Whether a run joins the trace named in the `runspan-trace` header of its request. Any caller can then have its runs recorded regardless of the sampling
   * rate, so enable this only if all callers are your own services. @default false
   */
  readonly joinTraces?: boolean;
  /** The folder that the page was built into. @default no page */
  readonly page?: string;
  /** Called with errors that belong to no request. @default writes a line to stderr */
  readonly log?: (line: string) => void;
}

/** A chat as a handler of standard requests: `chat.app.fetch` is what a host calls. */
export interface Chat {
  readonly app: Hono;
  /** Ends the runs that are under way here, which is told to their threads, then the streams that are open, and closes the storage. */
  close(): Promise<void>;
}

/** Puts the parts of a chat together. Its end points are below `/api`. Rejects with an error that says which of the options cannot be used. */
export async function createChat(options: ChatOptions): Promise<Chat> {
  const {
    agent,
    storage,
    callbacks = [],
    traces,
    model = { name: '', is_local: false },
    allowedHosts: hosts = [],
    joinTraces = false,
    page,
    log = defaultLog,
  } = options;
  checkAgent(agent, storage);
  const app = new Hono();
  app.onError(faultAnswer(log));
  app.notFound((context) => {
    return context.json(fault('not_found', `There is nothing at ${context.req.method} ${context.req.path}.`), 404);
  });
  app.use(allowedHosts(hosts));
  app.use(limitedBodies);
  const runs = new Runs({ agent, storage, callbacks, joinTraces, log });
  withRuns(storage.checkpointer, (runId, error) => runs.breakOff(runId, error));
  await runs.tellCutRuns();
  const streams = new AbortController();
  // Each of them listens to it.
  setMaxListeners(0, streams.signal);
  const states = new ThreadStates(agent);
  const parts = {
    commands: new Commands(agent, runs, log),
    runs,
    states,
    storage,
    end: streams.signal,
  };
  // What it checks of the ids of threads holds for the others as well.
  app.route('/api', protocolRoutes(parts));
  app.route('/api', traceRoutes({ agent: agent.name ?? 'agent', model, states, traces }));
  if (page !== undefined) app.route('/', pageRoutes(page, traces?.origin));
  return {
    app,
    close: async () => {
      await runs.close();
      streams.abort();
      await storage.close();
    },
  };
}

/** Throws where an agent cannot be used, as far as it lets that be seen. */
function checkAgent(agent: Agent, storage: Storage): void {
  const remedy = 'compile its graph with { checkpointer: storage.checkpointer }';
  if ('checkpointer' in agent && agent.checkpointer !== storage.checkpointer) {
    // A graph that is to be part of another has a boolean there.
    if (typeof agent.checkpointer !== 'object') throw new Error(`The agent has no checkpointer: ${remedy}.`);
    throw new Error(`The agent keeps its states in another checkpointer than that of the storage: ${remedy}.`);
  }
  if (agent.channels !== undefined && !Object.hasOwn(agent.channels, 'messages'))
    throw new Error('The state of the agent has no messages: give it those of MessagesAnnotation.');
}

function defaultLog(line: string): void {
  process.stderr.write(`chat: ${line}\n`);
}
