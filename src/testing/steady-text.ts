import { homedir } from 'node:os';
import { pathToFileURL } from 'node:url';
import { compareText, depthFirst, forestOf, type Tree } from '../base/forest.ts';
import { ignoreErrors } from '../base/guard.ts';
import type { RunRecord } from '../run/record.ts';
import { factsOf } from './recorded-run.ts';

export type SteadyText = (text: string) => string;

/**
 * Returns a function that replaces run ids with `[id of <name>]`, even inside other text. The function also replaces
 * dotted orders, OpenTelemetry ids, the current directory (`[cwd]`) and the home directory (`[home]`). Lines of stack
 * traces are removed. Runs with the same name are numbered, so `runs` must have the same order in each execution.
 */
export function steadyText(runs: readonly RunRecord[]): SteadyText {
  const counts = new Map<string, number>();
  return replacing(runs, ({ name }) => {
    const count = (counts.get(name) ?? 0) + 1;
    counts.set(name, count);
    return count === 1 ? name : `${name} #${count}`;
  });
}

/** Applies `text` to all strings in a JSON value and sorts the keys. */
export function steadyValue(value: unknown, text: SteadyText): unknown {
  if (typeof value === 'string') return text(value);
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map((item) => steadyValue(item, text));
  const entries = Object.entries(value).map(([key, item]) => [text(key), steadyValue(item, text)] as const);
  // Unlike assignment, `fromEntries` creates an own property for `__proto__`.
  return Object.fromEntries(entries.sort(([a], [b]) => compareText(a, b)));
}

/**
 * Returns trees whose siblings have the same order in each execution. Siblings are sorted by start time if `isByStart`
 * is set, then by name and content. Ids are ignored, because they are random.
 */
export function steadyForest(runs: readonly RunRecord[], isByStart: boolean): Tree<RunRecord>[] {
  const text = replacing(runs, () => 'a run');
  const contents = new Map<RunRecord, string>();
  const contentOf = (run: RunRecord): string => {
    const content = contents.get(run) ?? JSON.stringify(steadyValue(factsOf(run), text));
    contents.set(run, content);
    return content;
  };
  const compare = ({ run: a }: Tree<RunRecord>, { run: b }: Tree<RunRecord>): number =>
    (isByStart ? compareText(a.start_time, b.start_time) : 0) ||
    compareText(a.name, b.name) ||
    compareText(contentOf(a), contentOf(b));
  const trees = forestOf(runs).sort(compare);
  for (const [tree] of depthFirst(trees)) tree.children.sort(compare);
  return trees;
}

function replacing(runs: readonly RunRecord[], labelOf: (run: RunRecord) => string): SteadyText {
  const [owners, paths] = [ownersOf(runs, labelOf), machinePaths()];
  return (text) =>
    paths
      .reduce((left, [path, label]) => left.replace(path, label), text)
      .replace(FRAME_LINE, (line) => (FRAME_END.test(line) ? '' : line))
      .replace(IDS, (id) => replacement(id, owners));
}

const FRAME_LINE = /\n[ \t]+at [^\n]*/g;
/** Matches the end of a line in a stack trace. */
const FRAME_END = /(?::\d+:\d+|<anonymous>|\bindex \d+|\bnative)\)?$/;

const UUID = '[\\da-f]{8}(?:-[\\da-f]{4}){3}-[\\da-f]{12}';
const ORDER = `\\d{8}T\\d{12}Z${UUID}(?:\\.\\d{8}T\\d{12}Z${UUID})*`;
/** Matches dotted orders, run ids, and OpenTelemetry trace and span ids. */
const IDS = new RegExp(`${ORDER}|${UUID}|\\b[\\da-f]{32}\\b|\\b[\\da-f]{16}\\b`, 'gi');
const UUID_LENGTH = 36;
const TRACE_ID_LENGTH = 32;

/** Returns the label that replaces an id. Other ids are returned unchanged. */
function replacement(id: string, owners: ReadonlyMap<string, string>): string {
  const owner = owners.get(id.slice(-UUID_LENGTH).toLowerCase());
  if (owner === undefined) return id;
  if (id.length > UUID_LENGTH) return `[order of ${owner}]`;
  if (id.length === UUID_LENGTH) return `[id of ${owner}]`;
  return id.length === TRACE_ID_LENGTH ? `[trace id of ${owner}]` : `[span id of ${owner}]`;
}

function ownersOf(runs: readonly RunRecord[], labelOf: (run: RunRecord) => string): ReadonlyMap<string, string> {
  const owners = new Map(runs.map((run) => [run.id, labelOf(run)]));
  const add = (id: unknown, owner = 'no recorded run'): void => {
    if (typeof id === 'string' && !owners.has(id)) owners.set(id, owner);
  };
  const otelOf = ({ extra }: RunRecord): Record<string, unknown> => ({ ...(extra?.metadata?.otel as object) });
  for (const run of runs) {
    add(otelOf(run).span_id, owners.get(run.id));
    add(otelOf(run).trace_id, owners.get(run.trace_id));
  }
  // Parents and links may refer to runs that other processes recorded.
  for (const run of runs) {
    const { links, parent_span_id: parent, enclosing_span_id: enclosing } = otelOf(run);
    for (const id of [run.trace_id, run.parent_run_id, parent, enclosing]) add(id);
    for (const id of JSON.stringify(links ?? []).match(IDS) ?? []) add(id);
  }
  return owners;
}

/** Returns patterns for the paths of this machine. Longer paths come first, because one path may contain another. */
function machinePaths(): (readonly [path: RegExp, label: string])[] {
  // The current directory may have been deleted.
  const folders = [
    [ignoreErrors(() => pathToFileURL(process.cwd()).href) ?? '', '[cwd]'],
    [ignoreErrors(() => process.cwd()) ?? '', '[cwd]'],
    [ignoreErrors(homedir) ?? '', '[home]'],
  ] as const;
  return (
    folders
      // Skip the root directory, because every path starts with it.
      .filter(([path]) => /[/\\][^/\\]+$/.test(path))
      .sort(([a], [b]) => b.length - a.length)
      .map(([path, label]) => {
        const escaped = path.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
        return [new RegExp(`(?<![\\w.-])${escaped}(?![\\w.-])`, 'g'), label];
      })
  );
}
