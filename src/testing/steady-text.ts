import { homedir } from 'node:os';
import { pathToFileURL } from 'node:url';
import type { RunRecord } from '../run/record.ts';

/** Gives a text without what another execution would change in it. */
export type SteadyText = (text: string) => string;

const ANYBODY = 'a run';
const NOBODY = 'no recorded run';

/**
 * For text of these runs. Their ids become `[id of <name>]`, also in the midst of other text, and likewise their places in
 * the trace and what OpenTelemetry knows them by; the folders of the process and of the user become `[cwd]` and `[home]`;
 * lines of stacks are left out. Runs of one name are numbered as they come, so the list has to be in a steady order.
 */
export function steadyText(runs: readonly RunRecord[]): SteadyText {
  return replacing(ownersOf(runs));
}

/** The same for runs that have no order yet: it does not tell one from another. */
export function namelessText(runs: readonly RunRecord[]): SteadyText {
  return replacing(new Map([...ownersOf(runs).keys()].map((id) => [id, ANYBODY])));
}

/** A value of JSON with its text made steady and its keys sorted. */
export function steadyValue(value: unknown, text: SteadyText): unknown {
  if (typeof value === 'string') return text(value);
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map((item) => steadyValue(item, text));
  const entries = Object.entries(value).map(([key, item]) => [text(key), steadyValue(item, text)] as const);
  // fromEntries takes `__proto__` for a key like any other.
  return Object.fromEntries(entries.sort(([a], [b]) => (a < b ? -1 : 1)));
}

function replacing(owners: ReadonlyMap<string, string>): SteadyText {
  const paths = machinePaths();
  return (text) =>
    paths
      .reduce((left, [path, label]) => left.replace(path, label), text)
      .replace(FRAME_LINE, (line) => (FRAME_END.test(line) ? '' : line))
      .replace(IDS, (found) => labelOf(found, owners));
}

/** A line of a stack ends with a place, or with one of the words that stand for it. */
const FRAME_LINE = /\n[ \t]+at [^\n]*/g;
const FRAME_END = /(?::\d+:\d+|<anonymous>|\bindex \d+|\bnative)\)?$/;

const UUID = '[\\da-f]{8}(?:-[\\da-f]{4}){3}-[\\da-f]{12}';
const ORDER = `\\d{8}T\\d{12}Z${UUID}(?:\\.\\d{8}T\\d{12}Z${UUID})*`;
/** Places in a trace, ids of runs, and those of traces and spans. */
const IDS = new RegExp(`${ORDER}|${UUID}|\\b[\\da-f]{32}\\b|\\b[\\da-f]{16}\\b`, 'gi');
const UUID_LENGTH = 36;
const TRACE_ID_LENGTH = 32;

/** Other ids are the application's own, and stay. */
function labelOf(found: string, owners: ReadonlyMap<string, string>): string {
  const owner = owners.get(found.slice(-UUID_LENGTH).toLowerCase());
  if (owner === undefined) return found;
  if (found.length > UUID_LENGTH) return `[order of ${owner}]`;
  if (found.length === UUID_LENGTH) return `[id of ${owner}]`;
  return found.length === TRACE_ID_LENGTH ? `[trace id of ${owner}]` : `[span id of ${owner}]`;
}

/** Whose an id is. */
function ownersOf(runs: readonly RunRecord[]): ReadonlyMap<string, string> {
  const owners = new Map<string, string>();
  const counts = new Map<string, number>();
  for (const { id, name } of runs) {
    const count = (counts.get(name) ?? 0) + 1;
    counts.set(name, count);
    owners.set(id, count === 1 ? name : `${name} #${count}`);
  }
  for (const { id, trace_id, extra } of runs) {
    const otel = (extra?.metadata?.otel ?? {}) as Record<string, unknown>;
    own(owners, otel.span_id, owners.get(id));
    own(owners, otel.trace_id, owners.get(trace_id));
  }
  // What is left belongs to runs elsewhere: parents and links across processes.
  for (const { trace_id, parent_run_id, extra } of runs) {
    const otel = (extra?.metadata?.otel ?? {}) as Record<string, unknown>;
    const links: readonly unknown[] = Array.isArray(otel.links) ? otel.links : [];
    for (const ids of [otel, ...links] as readonly Record<string, unknown>[]) {
      for (const id of [ids?.trace_id, ids?.span_id, ids?.parent_span_id]) own(owners, id, NOBODY);
    }
    own(owners, trace_id, NOBODY);
    own(owners, parent_run_id, NOBODY);
  }
  return owners;
}

function own(owners: Map<string, string>, id: unknown, owner = NOBODY): void {
  if (typeof id === 'string' && !owners.has(id)) owners.set(id, owner);
}

/** Longer ones first: the one may stand within the other. */
function machinePaths(): (readonly [path: RegExp, label: string])[] {
  const folders = [
    [folder(() => pathToFileURL(process.cwd()).href), '[cwd]'],
    [folder(() => process.cwd()), '[cwd]'],
    [folder(homedir), '[home]'],
  ] as const;
  return (
    folders
      // The root would be found in every path.
      .filter(([path]) => /[/\\][^/\\]+$/.test(path))
      .sort(([a], [b]) => b.length - a.length)
      .map(([path, label]) => [new RegExp(`(?<![\\w.-])${escaped(path)}(?![\\w.-])`, 'g'), label])
  );
}

/** A process can be without either: a folder that is gone, a user who has none. */
function folder(read: () => string): string {
  try {
    return read();
  } catch {
    return '';
  }
}

function escaped(text: string): string {
  return text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
}
