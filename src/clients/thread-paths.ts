import { type Check, type Checks, checkedOptions } from '../base/options.ts';
import { checkIds } from './body-rules.ts';
import { pathOf } from './call.ts';

/**
 * Where the calls of threads are, below the address: `{thread_id}` and `{run_id}` stand for ids. By default as the reference chat
 * application has them.
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
  /** Where a thread is made, on a server that has to be told of one before it has a state. @default none */
  readonly create?: string | undefined;
}

/** The paths of an agent server. It lists threads by another call: `threads.search` of `AgentServer`. */
export const agentServerPaths: ThreadPaths = {
  stream: '/threads/{thread_id}/stream/events',
  create: '/threads',
};

/** All of them. */
export type AllPaths = Readonly<Record<Exclude<keyof ThreadPaths, 'create'>, string>> & Pick<ThreadPaths, 'create'>;

const DEFAULT_PATHS: AllPaths = {
  commands: '/threads/{thread_id}/commands',
  stream: '/threads/{thread_id}/stream',
  state: '/threads/{thread_id}/state',
  history: '/threads/{thread_id}/history',
  cancel: '/threads/{thread_id}/runs/{run_id}/cancel',
  delete: '/threads/{thread_id}',
  list: '/threads',
  create: undefined,
};

/** Those that were given, checked, and the usual ones in the place of the others. A RunspanError names the first that is none. */
export function allPaths(given: ThreadPaths): AllPaths {
  return {
    ...DEFAULT_PATHS,
    ...(checkedOptions<ThreadPaths>('`paths`', given, PATH_CHECKS) as ThreadPaths & AllPaths),
  };
}

/** A path with ids in it, each checked and encoded: none leads elsewhere. */
export function threadPath(call: string, path: string, ids: Readonly<Record<string, string>> = {}): string {
  checkIds(call, ids);
  return path.replace(/\{(\w+)\}/g, (_, name: string) => pathOf(ids[name] ?? '').slice(1));
}

const PATH_CHECKS = Object.fromEntries(
  Object.entries(DEFAULT_PATHS).map(([name, usual = '']) => [name, pathCheck(idsOf(usual))]),
) as Checks<ThreadPaths>;

/** A query would be lost, and a path without the slash would be one with the address. */
function pathCheck(ids: readonly string[]): Check {
  const parts = ids.length === 0 ? 'no id' : ids.join(' and ');
  return [
    `a path for \`paths\` that begins with a slash, has ${parts} and no query`,
    (path) => typeof path === 'string' && PATH.test(path) && `${idsOf(path)}` === `${ids}`,
  ];
}

/** Segments of what a path may hold and of names of ids, none of them dots alone. */
const PATH = /^(?:\/(?!\.{1,2}(?:\/|$))(?:[\w.~!$&'()*+,;=:@-]|%[\da-f]{2}|\{(?:thread|run)_id\})+)+$/i;

/** Each once, the thread's first, as people name them. */
function idsOf(path: string): readonly string[] {
  return [...new Set(path.match(/\{\w+\}/g))].sort().reverse();
}
