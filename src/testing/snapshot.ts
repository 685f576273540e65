import { depthFirst, type Tree } from '../base/forest.ts';
import { cut } from '../base/text.ts';
import { type Checks, checkedOptions, TRUE_OR_FALSE } from '../config/checker.ts';
import type { RunRecord, RunType } from '../run/record.ts';
import { type AttachmentFacts, type EventFacts, factsOf, type Recorded, recordedRuns } from './recorded-run.ts';
import { type SteadyText, steadyForest, steadyText, steadyValue } from './steady-text.ts';

/** A run and its child runs, without data that differs between executions. Empty fields are omitted. */
export interface RunSnapshot {
  name: string;
  runType: RunType;
  /**
   * Project of the run, if different from the parent's project. For a root run, set if the project is not `default`.
   */
  project?: string;
  /** Set if the run is still open. */
  open?: true;
  /** Set if the run's parent was not recorded. */
  orphan?: true;
  inputs?: Record<string, unknown>;
  outputs?: Record<string, unknown>;
  /** First line of the run's error, in the format `Name: message`. */
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
   * Whether to sort siblings by start time. For concurrent runs, set `ordered` to `false`, because the start order
   * varies. Siblings are then sorted by name and content.
   *
   * @default true
   */
  ordered?: boolean;
}

const CHECKS: Checks<SnapshotOptions> = { ordered: TRUE_OR_FALSE };

/**
 * Returns the runs as nested plain data that is the same in every execution. Pass the result to `toMatchSnapshot`,
 * `t.assert.snapshot` or `deepEqual`. Times, stack traces and runtime information are omitted. Keys are sorted. In all
 * texts, labels replace run ids (`[id of search]`), the current directory (`[cwd]`) and the home directory (`[home]`).
 * Siblings are sorted by start time, then by content.
 *
 * Times, random numbers and other ids in payloads are not replaced.
 */
export function snapshotOf(recorded: Recorded, options: SnapshotOptions = {}): RunSnapshot[] {
  const { ordered = true } = checkedOptions('the options', options, CHECKS);
  const trees = steadyForest(recordedRuns(recorded), ordered);
  const text = steadyText([...depthFirst(trees)].map(([{ run }]) => run));
  const roots: RunSnapshot[] = [];
  // A loop replaces recursion, because a long chain of runs would overflow the stack.
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

function snapshotOfRun(
  { run, isOrphan }: Tree<RunRecord>,
  parentProject: string | undefined,
  text: SteadyText,
): RunSnapshot {
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

/** Maximum number of runs in an outline. */
const LINES_MAX = 1_000;
/** Maximum length of a name or error in an outline, in characters. */
const TEXT_MAX = 200;

/**
 * Returns one line per run, indented below its parent, for example `search (tool): Error: no`. The text is the same in
 * every execution, like a snapshot. A failed `toHaveRun` prints this text. At most 1000 runs are shown, followed by the
 * number of omitted runs.
 */
export function outlineOf(recorded: Recorded, options: SnapshotOptions = {}): string {
  const runs = [...depthFirst(snapshotOf(recorded, options))];
  const lines = runs.slice(0, LINES_MAX).map(([run, depth]) => '  '.repeat(depth) + lineOf(run));
  if (runs.length > LINES_MAX) lines.push(`… and ${runs.length - LINES_MAX} more`);
  return lines.join('\n');
}

/** Returns the part of an error message that shows the recorded runs. */
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
