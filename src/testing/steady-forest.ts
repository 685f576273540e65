import type { RunRecord } from '../run/record.ts';
import { depthFirst, forestOf, type Tree } from './forest.ts';
import { factsOf } from './run-facts.ts';
import { namelessText, steadyValue } from './steady-text.ts';

/**
 * The runs as trees in which siblings stand as they do in every execution: by their start if that is wanted, then by name
 * and content, since ids are random.
 */
export function steadyForest(runs: readonly RunRecord[], isByStart: boolean): Tree[] {
  const text = namelessText(runs);
  const contents = new Map<RunRecord, string>();
  const contentOf = (run: RunRecord): string => {
    const content = contents.get(run) ?? JSON.stringify(steadyValue(factsOf(run), text));
    contents.set(run, content);
    return content;
  };
  const compare = ({ run: a }: Tree, { run: b }: Tree): number =>
    (isByStart ? compared(a.start_time, b.start_time) : 0) ||
    compared(a.name, b.name) ||
    compared(contentOf(a), contentOf(b));
  const trees = forestOf(runs).sort(compare);
  for (const [tree] of depthFirst(trees)) tree.children.sort(compare);
  return trees;
}

/** By code units: the order of a locale depends on the machine. */
function compared(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
