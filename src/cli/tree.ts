import { forestOf, type Tree } from '../run/forest.ts';
import type { RunRecord } from '../run/record.ts';
import { parseIsoTimestamp } from '../run/timestamp.ts';
import { columnsOf, cut, visible } from './terminal-text.ts';

/** What a piece of the drawing is, for whoever colours it. */
export type Ink = 'glyph' | 'name' | 'type' | 'detail' | 'notice' | 'failure';

export interface TreeOptions {
  /** Lines are cut to it, names and errors first. @default 120 */
  widthColumns?: number;
  /** Called with text that has been cut already. @default text as it is */
  paint?: (ink: Ink, text: string) => string;
}

/** Runs drawn of one trace; what is beyond is counted. */
const LINES_MAX = 1_000;
const NAME_COLUMNS_MIN = 16;
const ERROR_COLUMNS_MIN = 24;
/** Text is looked at up to here; a payload that came as a name takes no time. */
const CHARACTERS_MAX = 1_000;
const SEPARATOR = ' · ';

/** A line that is still to be drawn. */
interface Line {
  readonly tree: Tree;
  readonly glyphs: string;
  /** What stands before the glyphs of the runs below. */
  readonly indent: string;
}

/**
 * Runs as trees of lines, each with name, type, duration, tokens, `cancelled` or `interrupted`, and the first line of an error.
 * Runs of several traces are several trees; a run whose parent is not among them says so.
 */
export function drawTree(runs: readonly RunRecord[], options: TreeOptions = {}): string {
  const { widthColumns = 120, paint = (_, text) => text } = options;
  const pending: Line[] = forestOf(runs)
    .map((tree) => ({ tree, glyphs: '', indent: '' }))
    .reverse();
  const lines: string[] = [];
  for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
    if (lines.length === LINES_MAX) {
      lines.push(paint('detail', `… and ${new Set(runs.map(({ id }) => id)).size - LINES_MAX} more`));
      break;
    }
    lines.push(drawLine(next, widthColumns, paint));
    const { tree, indent } = next;
    for (const [index, child] of [...tree.children.entries()].reverse()) {
      const isLast = index === tree.children.length - 1;
      pending.push({
        tree: child,
        glyphs: fitted(indent + (isLast ? '└─ ' : '├─ '), widthColumns),
        indent: fitted(indent + (isLast ? '   ' : '│  '), widthColumns),
      });
    }
  }
  return lines.join('\n');
}

/** Deep down the left part of the glyphs gives way, so that half of the line is left for the run. */
function fitted(glyphs: string, widthColumns: number): string {
  const columnsMax = Math.max(8, Math.floor(widthColumns / 2));
  return glyphs.length <= columnsMax ? glyphs : `…${glyphs.slice(1 - columnsMax)}`;
}

function drawLine({ tree, glyphs }: Line, widthColumns: number, paint: NonNullable<TreeOptions['paint']>): string {
  const { run } = tree;
  const hasFailed = run.error !== undefined;
  const type = cut(visible(limited(run.run_type)), NAME_COLUMNS_MIN);
  const details = [timeText(run), tokensText(run) ?? [], tree.isOrphan ? 'parent missing' : []].flat();
  const notice = endReasonOf(run);
  const facts = [type, ...details, notice ?? []].flat().join(SEPARATOR);
  const failure = hasFailed ? `✗ ${visible(limited(firstLine(run.error ?? '')))}`.trimEnd() : '';

  const room = widthColumns - columnsOf(glyphs) - columnsOf(facts) - SEPARATOR.length;
  const failureMin = hasFailed ? SEPARATOR.length + Math.min(columnsOf(failure), ERROR_COLUMNS_MIN) : 0;
  const name = cut(visible(limited(run.name)), Math.max(NAME_COLUMNS_MIN, room - failureMin));
  const failureMax = Math.max(ERROR_COLUMNS_MIN, room - columnsOf(name) - SEPARATOR.length);

  return [
    paint('glyph', glyphs) + paint(hasFailed ? 'failure' : 'name', name),
    paint('type', type),
    ...details.map((detail) => paint('detail', detail)),
    ...(notice === undefined ? [] : [paint('notice', notice)]),
    ...(hasFailed ? [paint('failure', cut(failure, failureMax))] : []),
  ].join(paint('glyph', SEPARATOR));
}

function timeText({ start_time, end_time }: RunRecord): string {
  if (end_time === undefined) return 'not ended';
  const [startUs, endUs] = [parseIsoTimestamp(start_time), parseIsoTimestamp(end_time)];
  return startUs === undefined || endUs === undefined ? 'unknown time' : durationText(endUs - startUs);
}

/** A duration as people read it, to three digits or so: `0.4 ms`, `42 ms`, `1.25 s`, `2 min 5 s`, `1 h 3 min`. */
function durationText(us: number): string {
  const ms = Math.max(0, us) / 1_000;
  if (ms < 9.95) return `${ms.toFixed(1)} ms`;
  if (ms < 999.5) return `${ms.toFixed(0)} ms`;
  if (ms < 59_995) return `${(ms / 1_000).toFixed(2)} s`;
  const seconds = Math.round(ms / 1_000);
  if (seconds < 3_600) return `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
  const minutes = Math.round(seconds / 60);
  return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

/** `165 tokens (120 in, 45 out)`, or what of it is known; undefined when nothing is. Runs are as they were sent. */
function tokensText(run: RunRecord): string | undefined {
  const usage = run.outputs?.usage_metadata ?? run.extra?.metadata?.usage_metadata;
  const input = countIn(usage, 'input_tokens');
  const output = countIn(usage, 'output_tokens');
  const total = countIn(usage, 'total_tokens') ?? sum(input, output);
  const parts = [input === undefined ? [] : `${input} in`, output === undefined ? [] : `${output} out`].flat();
  if (total !== undefined) return `${counted(total)}${parts.length === 0 ? '' : ` (${parts.join(', ')})`}`;
  if (input !== undefined) return `${counted(input)} in`;
  return output === undefined ? undefined : `${counted(output)} out`;
}

function counted(tokens: number): string {
  return `${tokens} ${tokens === 1 ? 'token' : 'tokens'}`;
}

/** Why a run ended before what it records had come to its end. */
function endReasonOf({ extra }: RunRecord): 'cancelled' | 'interrupted' | undefined {
  const reason: unknown = extra?.metadata?.end_reason;
  return reason === 'cancelled' || reason === 'interrupted' ? reason : undefined;
}

function countIn(usage: unknown, key: string): number | undefined {
  const count: unknown = (usage as Record<string, unknown> | null | undefined)?.[key];
  return typeof count === 'number' && Number.isFinite(count) && count >= 0 ? count : undefined;
}

function sum(input: number | undefined, output: number | undefined): number | undefined {
  return input === undefined || output === undefined ? undefined : input + output;
}

function firstLine(error: string): string {
  return limited(error.slice(0, 2 * CHARACTERS_MAX).trimStart()).split(/\r?\n|\r/, 1)[0] ?? '';
}

function limited(text: string): string {
  return text.length <= CHARACTERS_MAX ? text : `${text.slice(0, CHARACTERS_MAX)}…`;
}
