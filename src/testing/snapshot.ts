import { type Checks, checkedOptions } from '../base/options.ts';
import type { RunType } from '../run/record.ts';
import { depthFirst, type Tree } from './forest.ts';
import { type Recorded, runsOf } from './recorded.ts';
import { type AttachmentFacts, type EventFacts, factsOf } from './run-facts.ts';
import { steadyForest } from './steady-forest.ts';
import { type SteadyText, steadyText, steadyValue } from './steady-text.ts';

/** A run and those below it, as every execution of the same program gives them. What is empty is left out. */
export interface RunSnapshot {
  name: string;
  runType: RunType;
  /** Where it is another than that of the run above, of the first run another than `default`. */
  project?: string;
  /** Present while the run has not ended. */
  open?: true;
  /** Present when it names a parent that is not among the runs. */
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
   * False sorts siblings by name and content instead of by start: for runs beside each other whose order is left to the
   * network. @default true
   */
  ordered?: boolean;
}

const CHECKS: Checks<SnapshotOptions> = { ordered: ['true or false', (value) => typeof value === 'boolean'] };

/**
 * The runs as plain nested data that stays the same from one execution to the next, for `toMatchSnapshot`,
 * `t.assert.snapshot` and `deepEqual`. Left out are times, stacks and what the process runs on. In any text the ids of
 * these runs become `[id of search]`, and the folders of the process and of the user `[cwd]` and `[home]`. Keys are sorted.
 * Siblings stand by their start, those that started in the same microsecond by their content.
 *
 * Times, random numbers and ids of your own in payloads stay as they are.
 */
export function snapshotOf(recorded: Recorded, options: SnapshotOptions = {}): RunSnapshot[] {
  const { ordered = true } = checkedOptions('the options', options, CHECKS);
  const runs = runsOf(recorded);
  const trees = steadyForest(runs, ordered);
  const text = steadyText([...depthFirst(trees)].map(([{ run }]) => run));
  const roots: RunSnapshot[] = [];
  // Not recursive: a chain of runs may be longer than the stack is deep.
  const pending = trees.map((tree) => ({ tree, siblings: roots, project: 'default' as string | undefined }));
  for (const { tree, siblings, project } of pending) {
    const snapshot = snapshotOfRun(tree, project, text);
    siblings.push(snapshot);
    if (tree.children.length === 0) continue;
    const children: RunSnapshot[] = [];
    snapshot.children = children;
    for (const child of tree.children) {
      pending.push({ tree: child, siblings: children, project: tree.run.session_name ?? tree.run.session_id });
    }
  }
  return roots;
}

function snapshotOfRun({ run, isOrphan }: Tree, projectAbove: string | undefined, text: SteadyText): RunSnapshot {
  const { name, runType, project, open, ...content } = factsOf(run);
  const snapshot: Record<string, unknown> = { name: text(name), runType };
  if (project !== undefined && project !== projectAbove) snapshot.project = project;
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
