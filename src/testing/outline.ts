import { cut } from '../base/text.ts';
import type { RunRecord } from '../run/record.ts';
import { depthFirst } from './forest.ts';
import type { Recorded } from './recorded.ts';
import { type RunSnapshot, type SnapshotOptions, snapshotOf } from './snapshot.ts';

/** Runs drawn; what is beyond is counted. */
const LINES_MAX = 1_000;
/** Characters kept of a name or an error. */
const TEXT_MAX = 200;

/**
 * One line for each run, indented below its parent: `search (tool): Error: no`. It stays the same from one execution to the
 * next, as `snapshotOf` does, and is what the matchers show when they fail. 1 000 runs are drawn; the rest is counted.
 */
export function outlineOf(recorded: Recorded, options: SnapshotOptions = {}): string {
  const lines: string[] = [];
  let left = 0;
  for (const [run, depth] of depthFirst(snapshotOf(recorded, options))) {
    if (lines.length < LINES_MAX) lines.push('  '.repeat(depth) + lineOf(run));
    else left += 1;
  }
  if (left > 0) lines.push(`… and ${left} more`);
  return lines.join('\n');
}

/** What there is, for the end of a message. */
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
