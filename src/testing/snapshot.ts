import { type Checks, checkedOptions, TRUE_OR_FALSE } from '../base/options.ts';
import { cut } from '../base/text.ts';
import { depthFirst, type Tree } from '../run/forest.ts';
import type { RunRecord, RunType } from '../run/record.ts';
import { type AttachmentFacts, type EventFacts, factsOf, type Recorded, runsOf } from './recorded-run.ts';
import { type SteadyText, steadyForest, steadyText, steadyValue } from './steady-text.ts';

/** A run and its child runs. Equal in each execution of the same program. Empty fields are left out. */
export interface RunSnapshot {
  name: string;
  runType: RunType;
  /** Set if it differs from the project of the parent, or from `default` for a root run. */
  project?: string;
  /** Set if the run has not ended. */
  open?: true;
  /** Set if the parent of the run is missing. */
  orphan?: true;
  inputs?: Record<string, unknown>;
  outputs?: Record<string, unknown>;
  /** The first line, `Name: message`. */
  error?: string;
  events?: EventFacts[];
  tags?: string[];
  metadata?: Record<string, unknown>;
  attachments?: AttachmentFacts[];
  children?: RunSnapshot[];
}

export interface SnapshotOptions {
  /**
   * Set to `false` to sort siblings by name and content instead of by start, for concurrent runs that start in any
   * order.
   *
   * @default true
   */
  ordered?: boolean;
}

const CHECKS: Checks<SnapshotOptions> = { ordered: TRUE_OR_FALSE };

/**
 * Returns the runs as plain nested data that is equal in each execution, for `toMatchSnapshot`, `t.assert.snapshot` and
 * `deepEqual`. Contains no times, stacks and runtime information. Keys are sorted. In all texts, ids of the runs become
 * for example `[id of search]`, and the current folder and the home folder become `[cwd]` and `[home]`. Siblings are
 * sorted by start, and siblings that started in the same microsecond by content.
 *
 * Times, random numbers and other ids in payloads stay.
 */
export function snapshotOf(recorded: Recorded, options: SnapshotOptions = {}): RunSnapshot[] {
  const { ordered = true } = checkedOptions('the options', options, CHECKS);
  const trees = steadyForest(runsOf(recorded), ordered);
  const text = steadyText([...depthFirst(trees)].map(([{ run }]) => run));
  const roots: RunSnapshot[] = [];
  // Not recursive, because a chain of runs may be longer than the stack allows.
  const pending = trees.map((tree) => ({ tree, siblings: roots, project: 'default' as string | undefined }));
  for (const { tree, siblings, project } of pending) {
    const snapshot = snapshotOfRun(tree, project, text);
    siblings.push(snapshot);
    if (tree.children.length === 0) continue;
    const children: RunSnapshot[] = [];
    snapshot.children = children;
    for (const child of tree.children) {
      pending.push({ tree: child, siblings: children, project: factsOf(tree.run).project });
    }
  }
  return roots;
}

function snapshotOfRun({ run, isOrphan }: Tree, parentProject: string | undefined, text: SteadyText): RunSnapshot {
  const { name, runType, project, open, ...content } = factsOf(run);
  const snapshot: Record<string, unknown> = { name: text(name), runType };
  if (project !== undefined && project !== parentProject) snapshot.project = project;
  if (open) snapshot.open = true;
  if (isOrphan) snapshot.orphan = true;
  for (const [key, value] of Object.entries(content)) {
    if (!isEmpty(value)) snapshot[key] = steadyValue(value, text);
  }
  return snapshot as unknown as RunSnapshot;
}

function isEmpty(value: unknown): boolean {
  return value === undefined || (typeof value === 'object' && value !== null && Object.keys(value).length === 0);
}

/** Maximum number of runs in an outline. Further runs are counted. */
const LINES_MAX = 1_000;
/** Maximum number of characters of a name or an error. */
const TEXT_MAX = 200;

/**
 * Returns one line for each run, indented below its parent: `search (tool): Error: no`. The text is equal in each
 * execution, like `snapshotOf`. Failed matchers print it. It contains up to 1 000 runs and the number of further runs.
 */
export function outlineOf(recorded: Recorded, options: SnapshotOptions = {}): string {
  const runs = [...depthFirst(snapshotOf(recorded, options))];
  const lines = runs.slice(0, LINES_MAX).map(([run, depth]) => '  '.repeat(depth) + lineOf(run));
  if (runs.length > LINES_MAX) lines.push(`… and ${runs.length - LINES_MAX} more`);
  return lines.join('\n');
}

/** Returns the end of an error message, which shows all runs. */
export function recordedText(runs: readonly RunRecord[]): string {
  return `Recorded:\n  ${runs.length === 0 ? 'nothing' : outlineOf(runs).replaceAll('\n', '\n  ')}`;
}

function lineOf({ name, runType, open, error }: RunSnapshot): string {
  const end = error ?? (open ? 'open' : undefined);
  return `${onOneLine(name)} (${onOneLine(runType)})${end === undefined ? '' : `: ${onOneLine(end)}`}`;
}

function onOneLine(text: string): string {
  return cut(text.replace(/[\p{Cc}\u2028\u2029]+/gu, ' '), TEXT_MAX);
}
