import { type Check, type Checks, checkedOptions } from '../../../config/checker.ts';

/**
 * Paths of the service's routes, relative to the base URL. Each path must contain the same placeholders as the default
 * path. The defaults are the reference chat application's paths.
 */
export interface ThreadPaths {
  /** @default '/threads/{thread_id}/commands' */
  readonly commands?: string | undefined;
  /** @default '/threads/{thread_id}/stream' */
  readonly stream?: string | undefined;
  /** @default '/threads/{thread_id}/state' */
  readonly state?: string | undefined;
  /** @default '/threads/{thread_id}/history' */
  readonly history?: string | undefined;
  /** @default '/threads/{thread_id}/runs/{run_id}/cancel' */
  readonly cancel?: string | undefined;
  /** @default '/threads/{thread_id}' */
  readonly delete?: string | undefined;
  /** @default '/threads' */
  readonly list?: string | undefined;
  /**
   * Path of the request that creates a thread. Set this path if a thread must exist before its first state.
   * @default none
   */
  readonly create?: string | undefined;
}

/** Paths of an agent server's routes. To list an agent server's threads, use `AgentServer`'s `threads.search`. */
export const agentServerPaths: ThreadPaths = {
  stream: '/threads/{thread_id}/stream/events',
  create: '/threads',
};

type AllPaths = Readonly<Record<Exclude<keyof ThreadPaths, 'create'>, string>> & Pick<ThreadPaths, 'create'>;

const DEFAULTS: AllPaths = {
  commands: '/threads/{thread_id}/commands',
  stream: '/threads/{thread_id}/stream',
  state: '/threads/{thread_id}/state',
  history: '/threads/{thread_id}/history',
  cancel: '/threads/{thread_id}/runs/{run_id}/cancel',
  delete: '/threads/{thread_id}',
  list: '/threads',
  create: undefined,
};

/** Returns all paths, using the default for each missing path. Throws a RunspanError if a path is invalid. */
export function allPaths(given: ThreadPaths): AllPaths {
  return { ...DEFAULTS, ...(checkedOptions<ThreadPaths>('`paths`', given, CHECKS) as AllPaths) };
}

/**
 * Matches paths without a query. The segments `.` and `..` are rejected, because they would resolve to another path.
 */
const PATH = /^(?:\/(?!\.{1,2}(?:\/|$))(?:[\w.~!$&'()*+,;=:@-]|%[\da-f]{2}|\{(?:thread|run)_id\})+)+$/i;

const CHECKS = Object.fromEntries(
  Object.entries(DEFAULTS).map(([name, path = '']) => [name, pathCheck(placeholdersOf(path))]),
) as Checks<ThreadPaths>;

function pathCheck(placeholders: readonly string[]): Check {
  const expected = placeholders.length === 0 ? 'no placeholder' : placeholders.join(' and ');
  return [
    `a path for \`paths\` that begins with a slash, has ${expected} and no query`,
    (path) => typeof path === 'string' && PATH.test(path) && `${placeholdersOf(path)}` === `${placeholders}`,
  ];
}

/** Returns the unique placeholders in a path, with the thread id first. */
function placeholdersOf(path: string): readonly string[] {
  return [...new Set(path.match(/\{\w+\}/g))].sort().reverse();
}
