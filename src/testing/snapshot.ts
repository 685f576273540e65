import { type Checks, checkedOptions, TRUE_OR_FALSE } from '../base/options.ts';
import { cut } from '../base/text.ts';
import { depthFirst, type Tree } from '../run/forest.ts';
import type { RunRecord, RunType } from '../run/record.ts';
import { type AttachmentFacts, type EventFacts, factsOf, type Recorded, runsOf } from './recorded-run.ts';
import { type SteadyText, steadyForest, steadyText, steadyValue } from './steady-text.ts';

/**
 * A run and its child runs, reduced to data that is the same in every execution of a program. Empty fields are omitted.
 */
export interface RunSnapshot {
  name: string;
  runType: RunType;
  /**
   * The run's project. Set if the run's project differs from the parent's project or, for a root run, from `default`.
   */
  project?: string;
  /** Set if the run is still open. */
  open?: true;
  /** Set if the run's parent is missing. */
  orphan?: true;
  inputs?: Record<string, unknown>;
  outputs?: Record<string, unknown>;
  /** The first line of the run's error, `Name: message`. */
  error?: string;
  events?: EventFacts[];
  tags?: string[];
  metadata?: Record<string, unknown>;
  attachments?: AttachmentFacts[];
  children?: RunSnapshot[];
}

/** Options of `snapshotOf` and `outlineOf`. */
export interface SnapshotOptions {
  /**
   * Whether siblings are sorted by start. Set `ordered` to `false` for concurrent runs, whose start order varies.
   * Siblings are then sorted by name and content.
   *
   * @default true
   */
  ordered?: boolean;
}

const CHECKS: Checks<SnapshotOptions> = { ordered: TRUE_OR_FALSE };

/**
 * Returns the runs as plain nested data that is the same in every execution, for `toMatchSnapshot`, `t.assert.snapshot`
 * and `deepEqual`. Times, stacks and runtime information are omitted. Keys are sorted. Labels replace run ids (`[id of
 * search]`), the current folder (`[cwd]`) and the home folder (`[home]`) in all texts. Siblings are sorted by start, or
 * by content if they started in the same microsecond.
 *
 * Payloads may still contain times, random numbers and other ids, which are not replaced.
 */
export function snapshotOf(recorded: Recorded, options: SnapshotOptions = {}): RunSnapshot[] {
  const { ordered = true } = checkedOptions('the options', options, CHECKS);
  const trees = steadyForest(runsOf(recorded), ordered);
  const text = steadyText([...depthFirst(trees)].map(([{ run }]) => run));
  const roots: RunSnapshot[] = [];
  // Not recursive, because a long chain of runs would exceed the call stack.
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

/** Maximum number of runs in an outline. A longer outline ends with the number of omitted runs. */
const LINES_MAX = 1_000;
/** Maximum number of characters of a name or an error in an outline. */
const TEXT_MAX = 200;

/**
 * Returns one line per run, indented below its parent, for example `search (tool): Error: no`. Like a snapshot, the
 * text is the same in every execution. Failed matchers print it. The text shows at most 1 000 runs, and then how many
 * more there are.
 */
export function outlineOf(recorded: Recorded, options: SnapshotOptions = {}): string {
  const runs = [...depthFirst(snapshotOf(recorded, options))];
  const lines = runs.slice(0, LINES_MAX).map(([run, depth]) => '  '.repeat(depth) + lineOf(run));
  if (runs.length > LINES_MAX) lines.push(`… and ${runs.length - LINES_MAX} more`);
  return lines.join('\n');
}

/** Returns the last part of an error message, which shows the recorded runs. */
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
