import { type AgentService, splitOptions } from './agent-service.ts';
import { ApiError } from './api-error.ts';
import { checkedBody, OBJECT, TRUTH } from './body-rules.ts';
import type { Call } from './call.ts';
import type { CallOptions } from './client-options.ts';
import { Page, PageList } from './page.ts';
import type { ThreadHistory, ThreadState } from './thread.ts';
import { type AllPaths, threadPath } from './thread-paths.ts';
import { HISTORY_RULES } from './threads.ts';

export interface BootstrapOptions extends CallOptions {
  /**
   * What becomes of a thread that has no state: `true` makes it, with no messages, and an object with these values; `false` rejects
   * with the 404.
   *
   * @default true
   */
  bootstrap?: boolean | Readonly<Record<string, unknown>>;
}

const BOOTSTRAP = [
  'true, false or an object of values',
  (value: unknown) => TRUTH[1](value) || OBJECT[1](value),
] as const;

/** The latest state of a thread, which is made where it has none. */
export async function latestState<Values>(
  service: AgentService,
  paths: AllPaths,
  threadId: string,
  given: BootstrapOptions | undefined,
): Promise<ThreadState<Values>> {
  const name = 'threads.state';
  const { own, options } = splitOptions<BootstrapOptions>(name, given, { bootstrap: BOOTSTRAP });
  const { bootstrap = true } = own;
  const path = threadPath(name, paths.state, { thread_id: threadId });
  const latest: Call = { name, method: 'GET', path, options };
  try {
    return await service.json(latest);
  } catch (thrown) {
    if (bootstrap === false || !(thrown instanceof ApiError && thrown.status === 404)) throw thrown;
  }
  if (paths.create !== undefined) {
    const body = { thread_id: threadId, if_exists: 'do_nothing' };
    await service.json({ name, method: 'POST', path: paths.create, body, isIdempotent: true, options });
    return service.json(latest);
  }
  const body = { values: bootstrap === true ? { messages: [] } : bootstrap };
  const made = await service.json<Partial<ThreadState<Values>>>({ name, method: 'POST', path, body, options });
  // Some answer with the checkpoint alone.
  return made.values === undefined ? service.json(latest) : (made as ThreadState<Values>);
}

/** The states of a thread, the latest first, each page those before the last of the one ahead. */
export function statePages<Values>(
  service: AgentService,
  historyPath: string,
  threadId: string,
  filter: ThreadHistory,
  options: CallOptions | undefined,
): PageList<ThreadState<Values>> {
  const name = 'threads.history';
  const page = async (body: Record<string, unknown>, limit: number): Promise<Page<ThreadState<Values>>> => {
    const path = threadPath(name, historyPath, { thread_id: threadId });
    const call = { name, method: 'POST', path, body: { ...body, limit }, isIdempotent: true, options } as const;
    const states = await service.json<ThreadState<Values>[]>(call, 'list');
    // All servers take the id; not all take the checkpoint that has it.
    const next = states.at(-1)?.checkpoint?.checkpoint_id ?? undefined;
    // One that does not move on would be asked for ever.
    const hasNext = states.length >= limit && next !== undefined && next !== body.before;
    return new Page(states, hasNext ? () => page({ ...body, before: next }, limit) : undefined);
  };
  return new PageList(async () => {
    const { limit = 10, ...body } = checkedBody(name, filter, HISTORY_RULES);
    return page(body, limit as number);
  });
}
