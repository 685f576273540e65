import { clock } from '../../base/clock.ts';
import type { AgentRuns, StatelessRuns } from '../../clients/agent-server/runs.ts';
import { exactJson, fieldsOf } from '../../payload/fields.ts';
import { mintTokens } from '../../receiver/api/feedback-routes.ts';
import { HttpError } from '../../receiver/http/http-error.ts';
import type { RouteResponse } from '../../receiver/http/route.ts';
import type { Store } from '../../receiver/store/store.ts';
import { newRunId } from '../../run/ids.ts';
import { fromHeaders } from '../../run/propagation/propagation.ts';
import { type AgentThread, eventStream, pageOf, recordsOf } from './agent-data.ts';
import { type AgentData, type AgentHandler, type AgentHandlers, NO_CONTENT, ok } from './agent-handlers.ts';
import { AgentRun, type AgentRunRequest, isIn } from './agent-run.ts';
import type { Assistant } from './assistant.ts';
import type { EndpointCall } from './endpoint-routes.ts';

/** Returns the handlers of runs with and without a thread. */
export function runHandlers(
  assistants: Readonly<Record<string, Assistant>>,
  store: Store,
): readonly [AgentHandlers<AgentRuns>, AgentHandlers<StatelessRuns>] {
  const start = async (agent: AgentData, call: EndpointCall, body = call.body): Promise<AgentRun> => {
    const request = body as AgentRunRequest;
    const { ids, tenant } = call;
    const { assistant_id: assistantId, graph_id } = agent.assistant(request.assistant_id);
    const [graph, id] = [String(graph_id), newRunId(clock.nowUs())];
    const feedback = await feedbackUrls(call, id, request.feedback_keys ?? []);
    const thread = threadFor(agent, ids.thread_id, request);
    if (thread.active.size > 0) makeRoom(agent, thread, request.multitask_strategy);
    const path = `${ids.thread_id === undefined ? '' : `/threads/${ids.thread_id}`}/runs/${id}`;
    const run = new AgentRun({
      id,
      path,
      thread,
      assistantId,
      graph,
      assistant: assistants[graph] as Assistant,
      request,
      feedback,
      caller: fromHeaders(call.call.request.headers),
      project: agent.project ?? graph,
      save: (operations) => store.apply({ tenant }, operations),
    });
    return agent.runs.add(run);
  };
  const creating = {
    create: async (agent, call) => {
      const { record, settings } = await start(agent, call);
      return { status: 200, headers: { 'content-location': settings.path }, body: record };
    },
    wait: async (agent, call) => waitedFor(await start(agent, call)),
    stream: async (agent, call) => streamed(await start(agent, call)),
  } satisfies Record<string, AgentHandler>;
  const joinStream: AgentHandler = (agent, { ids, search, call }) =>
    streamed(runOf(agent, ids), search, call.request.headers['last-event-id']);
  return [
    {
      ...creating,
      joinStream,
      list: (agent, { ids, body }) => {
        const { thread_id } = agent.threads.get(ids.thread_id).record;
        return pageOf(recordsOf(agent.runs.find({ ...fieldsOf(body), thread_id })), body);
      },
      get: (agent, { ids }) => ok(runOf(agent, ids).record),
      delete: async (agent, { ids }) => {
        const run = runOf(agent, ids);
        await run.cancel();
        agent.runs.delete(run.settings.id);
        return NO_CONTENT;
      },
      join: (agent, { ids, search }) => waitedFor(runOf(agent, ids), search),
      cancel: async (agent, { ids, search }) => {
        const cancelling = cancel(agent, runOf(agent, ids), search.get('action'));
        if (!isTrue(search, 'wait')) return { status: 202, body: {} };
        await cancelling;
        return NO_CONTENT;
      },
    },
    {
      ...creating,
      joinStream,
      batch: async (agent, call) => {
        const runs = (call.body as unknown[]).map((body) => start(agent, call, body));
        return ok(recordsOf(await Promise.all(runs)));
      },
      cancel: async (agent, { body, search }) => {
        const { status, thread_id, run_ids: ids } = body as { status?: string; thread_id?: string; run_ids?: string[] };
        const found = agent.runs.find({ thread_id, status: status === 'all' ? undefined : status });
        const runs = found.filter(({ settings }) => ids?.includes(settings.id) ?? true);
        await Promise.all(runs.map((run) => cancel(agent, run, search.get('action'))));
        return NO_CONTENT;
      },
    },
  ];
}

async function feedbackUrls({ call }: EndpointCall, runId: string, keys: readonly string[]) {
  const tokens = await mintTokens(
    call,
    keys.map((feedback_key) => ({ run_id: runId, feedback_key })),
  );
  return Object.fromEntries(tokens.map(({ feedback_key, url }) => [feedback_key, url]));
}

function threadFor(agent: AgentData, id: string | undefined, request: AgentRunRequest): AgentThread {
  if (id === undefined) return agent.addThread({}, request.on_completion !== 'keep');
  if (request.if_not_exists === 'create') return agent.addThread({ thread_id: id, if_exists: 'do_nothing' });
  return agent.threads.get(id);
}

/** Applies the strategy for a thread with active runs. By default, the new run waits for them. */
function makeRoom(agent: AgentData, { active }: AgentThread, strategy: string | undefined): void {
  if (strategy === 'reject')
    throw new HttpError(422, 'The thread has an active run: choose another multitask_strategy');
  if (strategy === 'interrupt' || strategy === 'rollback')
    for (const id of active.keys()) void cancel(agent, agent.runs.get(id), strategy);
}

async function cancel(agent: AgentData, run: AgentRun, action: string | null): Promise<void> {
  await run.cancel(action);
  if (action === 'rollback') agent.runs.delete(run.settings.id);
}

function runOf({ runs }: AgentData, { run_id, thread_id }: EndpointCall['ids']): AgentRun {
  const run = runs.get(run_id);
  if (thread_id !== undefined && run.record.thread_id !== thread_id)
    throw new HttpError(404, `The thread ${thread_id} has no run ${run_id}`);
  return run;
}

function waitedFor(run: AgentRun, search?: URLSearchParams): RouteResponse {
  return {
    status: 200,
    headers: { 'content-location': run.settings.path },
    content: async function* (ended) {
      cancelWith(ended, run, search);
      // An empty line sends the headers.
      yield '\n';
      yield exactJson(await run.result);
    },
  };
}

/** Streams all events of a run to the request that creates it. `search` is the query of a request that joins the run. */
function streamed(run: AgentRun, search?: URLSearchParams, lastId?: string | string[]): RouteResponse {
  const { events } = run;
  const { request, path } = run.settings;
  const isStored = request.stream_resumable === true;
  const from = events.positionAfter(search === undefined ? '-1' : isStored ? lastId : undefined);
  const modes = search?.getAll('stream_mode').flatMap((mode) => mode.split(',')) ?? [];
  const headers = { 'content-location': path, ...(isStored && { location: `${path}/stream` }) };
  return eventStream((ended) => {
    cancelWith(ended, run, search);
    return events.read(from, ended, (name) => modes.length === 0 || isIn(modes, name));
  }, headers);
}

/** Cancels the run when the client leaves, if the request that creates the run, or joins it with a query, says so. */
function cancelWith(ended: AbortSignal, run: AgentRun, search: URLSearchParams | undefined): void {
  const isWanted =
    search === undefined ? run.settings.request.on_disconnect === 'cancel' : isTrue(search, 'cancel_on_disconnect');
  if (!isWanted) return;
  if (ended.aborted) void run.cancel();
  else ended.addEventListener('abort', () => void run.cancel());
}

function isTrue(search: URLSearchParams, name: string): boolean {
  return ['1', 'true'].includes(search.get(name) ?? '');
}
