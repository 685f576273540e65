import type { Check } from '../base/checked-options.ts';
import { checkIds } from './body-rules.ts';
import { pathOf } from './call.ts';
import { isRecord } from './record.ts';

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

/** Those that were given, and the usual ones in the place of the others. */
export function allPaths(given: ThreadPaths): AllPaths {
  const own = Object.entries(given).filter(([, path]) => path !== undefined);
  return { ...DEFAULT_PATHS, ...(Object.fromEntries(own) as ThreadPaths & AllPaths) };
}

const NAMES = Object.keys(DEFAULT_PATHS);

/** What the option `paths` has to be. A query would be lost, and a path without the slash would be one with the address. */
export const PATHS: Check = [
  `an object of paths that begin with a slash, by the names ${NAMES.join(', ')}`,
  (value) =>
    isRecord(value) &&
    Object.entries(value).every(([name, path]) => NAMES.includes(name) && (path === undefined || isPath(name, path))),
];

function isPath(name: string, path: unknown): boolean {
  if (
    typeof path !== 'string' ||
    !/^(?:\/(?!\.{1,2}(?:\/|$))(?:[\w.~!$&'()*+,;=:@-]|%[\da-f]{2}|\{(?:thread|run)_id\})+)+$/i.test(path)
  )
    return false;
  const ids = [...(DEFAULT_PATHS[name as keyof ThreadPaths] ?? '').matchAll(/\{\w+\}/g)].map(([id]) => id);
  return ids.every((id) => path.includes(id)) && [...path.matchAll(/\{\w+\}/g)].every(([id]) => ids.includes(id));
}

/** A path with ids in it, each checked and encoded: none leads elsewhere. */
export function threadPath(call: string, path: string, ids: Readonly<Record<string, string>> = {}): string {
  checkIds(call, ids);
  return path.replace(/\{(\w+)\}/g, (_, name: string) => pathOf(ids[name] ?? '').slice(1));
}
