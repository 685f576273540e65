import { visible } from '../base/text.ts';
import type { RunOutline, RunStatus } from '../receiver/store/run-view.ts';
import { parseIsoTimestamp } from '../run/time.ts';
import { forestOf, type Tree } from '../testing/forest.ts';
import { columnsOf, cut } from './terminal-text.ts';

/** What a piece of the drawing is, for whoever colours it. */
export type Ink = 'glyph' | 'name' | 'type' | 'detail' | 'notice' | 'failure';

export interface TreeOptions {
  /** Lines are cut to it, names and errors first. @default 120 */
  widthColumns?: number;
  /** Called with text that has been cut already. @default text as it is */
  paint?: (ink: Ink, text: string) => string;
}

const WIDTH_COLUMNS = 120;
const asItIs = (_: Ink, text: string): string => text;

/** Runs drawn of one trace; what is beyond is counted. */
const LINES_MAX = 1_000;
const NAME_COLUMNS_MIN = 16;
const ERROR_COLUMNS_MIN = 24;
/** Text is looked at up to here; a payload that came as a name takes no time. */
const CHARACTERS_MAX = 1_000;
const SEPARATOR = ' · ';

/** What is said of runs that ended before their work did. */
const NOTICES: ReadonlyMap<RunStatus, string> = new Map([
  ['cancelled', 'cancelled'],
  ['interrupted', 'interrupted'],
]);

/** A line that is still to be drawn. */
interface Line {
  readonly tree: Tree<RunOutline>;
  readonly glyphs: string;
  /** What stands before the glyphs of the runs below. */
  readonly indent: string;
}

/**
 * Runs as trees of lines, each with name, type, duration, tokens, `cancelled` or `interrupted`, and the first line of an error.
 * Runs of several traces are several trees; a run whose parent is not among them says so.
 */
export function drawTree(runs: readonly RunOutline[], options: TreeOptions = {}): string {
  const { widthColumns = WIDTH_COLUMNS, paint = asItIs } = options;
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
  const details = tree.isOrphan ? ['parent missing'] : [];
  return paint('glyph', glyphs) + drawRun(tree.run, details, { widthColumns: widthColumns - columnsOf(glyphs), paint });
}

/** A run on one line, with more that is to be said of it after its time and tokens. */
export function drawRun(
  run: RunOutline,
  more: readonly string[],
  { widthColumns = WIDTH_COLUMNS, paint = asItIs }: TreeOptions,
): string {
  const { error } = run;
  const type = cut(visible(limited(run.run_type)), NAME_COLUMNS_MIN);
  const details = [timeText(run), tokensText(run) ?? [], ...more].flat();
  const notice = NOTICES.get(run.status);
  const facts = [type, ...details, notice ?? []].flat().join(SEPARATOR);
  const failure = error === undefined ? '' : `✗ ${visible(error)}`;

  const room = widthColumns - columnsOf(facts) - SEPARATOR.length;
  const failureMin = failure === '' ? 0 : SEPARATOR.length + Math.min(columnsOf(failure), ERROR_COLUMNS_MIN);
  const name = cut(visible(limited(run.name)), Math.max(NAME_COLUMNS_MIN, room - failureMin));
  const failureMax = Math.max(ERROR_COLUMNS_MIN, room - columnsOf(name) - SEPARATOR.length);

  return [
    paint(failure === '' ? 'name' : 'failure', name),
    paint('type', type),
    ...details.map((detail) => paint('detail', detail)),
    ...(notice === undefined ? [] : [paint('notice', notice)]),
    ...(failure === '' ? [] : [paint('failure', cut(failure, failureMax))]),
  ].join(paint('glyph', SEPARATOR));
}

/** How long it took, or that it has not ended. */
export function timeText({ start_time, end_time }: Pick<RunOutline, 'start_time' | 'end_time'>): string {
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

/** `165 tokens (120 in, 45 out)`, or what of it is known; undefined when nothing is. */
export function tokensText({ usage = {} }: Pick<RunOutline, 'usage'>): string | undefined {
  const { input_tokens: input, output_tokens: output, total_tokens: total } = usage;
  if (total === undefined) return undefined;
  if (input !== undefined && output !== undefined) return `${counted(total)} (${input} in, ${output} out)`;
  if (total === input) return `${counted(total)} in`;
  return total === output ? `${counted(total)} out` : counted(total);
}

function counted(tokens: number): string {
  return `${tokens} ${tokens === 1 ? 'token' : 'tokens'}`;
}

function limited(text: string): string {
  return text.length <= CHARACTERS_MAX ? text : `${text.slice(0, CHARACTERS_MAX)}…`;
}
