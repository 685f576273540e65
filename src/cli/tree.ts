import { styleText } from 'node:util';
import { visible } from '../base/text.ts';
import { environmentWith, variable } from '../config/environment.ts';
import { grouped } from '../receiver/domain/grouped.ts';
import type { RunOutline, RunStatus, Usage } from '../receiver/domain/run-view.ts';
import { cachedShareOf } from '../receiver/domain/usage.ts';
import { parseIsoTimestamp } from '../run/time.ts';
import { forestOf, type Tree } from '../testing/forest.ts';
import type { Output } from './command-line.ts';
import { columnsOf, counted, cut } from './terminal-text.ts';

/** The parts of a drawing that have different colors. */
export type Ink = 'glyph' | 'name' | 'type' | 'detail' | 'notice' | 'failure';

export interface TreeOptions {
  /** Maximum width of a line in columns. Names are shortened first, then error messages. */
  readonly widthColumns: number;
  /** Adds color codes to text that has already been shortened, so that no code is cut. */
  readonly paint: (ink: Ink, text: string) => string;
}

/** Line width in columns for files, pipes, and terminals that report no width. */
const LOG_COLUMNS = 200;

const STYLES: Readonly<Record<Ink, Parameters<typeof styleText>[0]>> = {
  glyph: 'gray',
  name: 'bold',
  type: 'cyan',
  detail: 'gray',
  notice: 'yellow',
  failure: 'red',
};

/** Returns the line width and colors for a stream. */
export function treeOptionsFor(stream: Output): TreeOptions {
  const isColored = usesColors(stream);
  return {
    widthColumns: stream.columns || LOG_COLUMNS,
    paint: (ink, text) => (isColored && text !== '' ? styleText(STYLES[ink], text, { validateStream: false }) : text),
  };
}

/**
 * Returns whether to use colors: if `FORCE_COLOR` is set (`0` and `false` mean no), otherwise if the stream is a
 * terminal that supports colors and `NO_COLOR` is not set. An empty variable counts as not set (https://no-color.org).
 */
function usesColors(stream: Output): boolean {
  const forced = variable('FORCE_COLOR');
  if (forced) return forced !== '0' && forced !== 'false';
  if (variable('NO_COLOR') || stream.isTTY !== true) return false;
  // Node turns colors off even if `NO_COLOR` is empty.
  return stream.hasColors?.(environmentWith({ NO_COLOR: undefined })) === true;
}

/** Maximum number of runs in a drawing. Further runs are only counted. */
const LINES_MAX = 1_000;
const NAME_COLUMNS_MIN = 16;
const ERROR_COLUMNS_MIN = 24;
/** Maximum number of characters in a name or type in a drawing. */
const CHARACTERS_MAX = 1_000;
const SEPARATOR = ' · ';

const NOTICES: readonly RunStatus[] = ['cancelled', 'interrupted'];

interface Line {
  readonly tree: Tree<RunOutline>;
  readonly glyphs: string;
  /** The text before the tree glyphs of child runs. */
  readonly indent: string;
}

/**
 * Draws one line per run: name, type, duration, tokens, cost, cached share, and the first line of the error. Cancelled and interrupted runs
 * show their status. Each trace is drawn as a separate tree. Runs with a missing parent are marked. The line of a call
 * counts its further records, which have no lines of their own. Their child runs are drawn below the call.
 */
export function drawTree(runs: readonly RunOutline[], options: TreeOptions): string {
  const { widthColumns, paint } = options;
  const repeats = repeatsIn(runs);
  const records = grouped(repeats.values(), (outerId) => outerId);
  const shown = runs.flatMap(({ parent_run_id: parent, ...run }) => {
    const above = repeats.get(parent ?? '') ?? parent;
    return repeats.has(run.id) ? [] : [{ ...run, ...(above !== undefined && { parent_run_id: above }) }];
  });
  const pending: Line[] = forestOf(shown)
    .map((tree) => ({ tree, glyphs: '', indent: '' }))
    .reverse();
  const lines: string[] = [];
  for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
    if (lines.length === LINES_MAX) {
      lines.push(paint('detail', `… and ${new Set(shown.map(({ id }) => id)).size - LINES_MAX} more`));
      break;
    }
    const { tree, glyphs, indent } = next;
    const width = widthColumns - columnsOf(glyphs);
    const repeated = records.get(tree.run.id)?.length ?? 0;
    const details = [
      ...(tree.isOrphan ? ['parent missing'] : []),
      ...(repeated > 0 ? [`+${counted(repeated, 'record')} of the same call`] : []),
    ];
    lines.push(paint('glyph', glyphs) + drawRun(tree.run, details, { widthColumns: width, paint }));
    for (const [index, child] of [...tree.children.entries()].reverse()) {
      const isLast = index === tree.children.length - 1;
      pending.push({
        tree: child,
        glyphs: shortened(indent + (isLast ? '└─ ' : '├─ '), widthColumns),
        indent: shortened(indent + (isLast ? '   ' : '│  '), widthColumns),
      });
    }
  }
  return lines.join('\n');
}

/** Maps each further record of a call to the outermost record. */
function repeatsIn(runs: readonly RunOutline[]): ReadonlyMap<string, string> {
  const ids = new Set(runs.map(({ id }) => id));
  return new Map(runs.flatMap(({ id, same_call_as: outer = '' }) => (ids.has(outer) ? [[id, outer]] : [])));
}

/** Cuts tree glyphs on the left, so that they fill at most half of the line. */
function shortened(glyphs: string, widthColumns: number): string {
  const columnsMax = Math.max(8, Math.floor(widthColumns / 2));
  return glyphs.length <= columnsMax ? glyphs : `…${glyphs.slice(1 - columnsMax)}`;
}

/** Draws one run on one line. The texts in `more` come after the duration and the usage. */
export function drawRun(run: RunOutline, more: readonly string[], { widthColumns, paint }: TreeOptions): string {
  const { error } = run;
  const type = cut(visible(run.run_type.slice(0, CHARACTERS_MAX)), NAME_COLUMNS_MIN);
  const details = [durationOf(run), ...usageTexts(run), ...more];
  const notice = NOTICES.includes(run.status) ? [run.status] : [];
  const facts = [type, ...details, ...notice].join(SEPARATOR);
  const failure = error === undefined ? '' : `✗ ${visible(error)}`;

  const room = widthColumns - columnsOf(facts) - SEPARATOR.length;
  const failureMin = failure === '' ? 0 : SEPARATOR.length + Math.min(columnsOf(failure), ERROR_COLUMNS_MIN);
  const name = cut(visible(run.name.slice(0, CHARACTERS_MAX)), Math.max(NAME_COLUMNS_MIN, room - failureMin));
  const failureMax = Math.max(ERROR_COLUMNS_MIN, room - columnsOf(name) - SEPARATOR.length);

  return [
    paint(failure === '' ? 'name' : 'failure', name),
    paint('type', type),
    ...details.map((detail) => paint('detail', detail)),
    ...notice.map((status) => paint('notice', status)),
    ...(failure === '' ? [] : [paint('failure', cut(failure, failureMax))]),
  ].join(paint('glyph', SEPARATOR));
}

export function durationOf({ start_time, end_time }: Pick<RunOutline, 'start_time' | 'end_time'>): string {
  if (end_time === undefined) return 'not ended';
  const [startUs, endUs] = [parseIsoTimestamp(start_time), parseIsoTimestamp(end_time)];
  return startUs === undefined || endUs === undefined ? 'unknown time' : durationText(endUs - startUs);
}

/** Formats a duration with about three digits: `0.4 ms`, `42 ms`, `1.25 s`, `2 min 5 s`, `1 h 3 min`. */
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

/** Formats the usage that is known, for example `165 tokens (120 in, 45 out)`, `$0.0120` and `90 % cached`. */
export function usageTexts({ usage }: Pick<RunOutline, 'usage'>): string[] {
  const cost = usage?.total_cost;
  return [tokensText({ usage }), cost === undefined ? undefined : dollarsText(cost), cachedText(usage)].flatMap(
    (text) => text ?? [],
  );
}

const BELOW_ONE = new Intl.NumberFormat('en-US', {
  style: 'currency',
  currency: 'USD',
  minimumSignificantDigits: 3,
  maximumSignificantDigits: 3,
});

/** Formats a cost. A cost below 1 dollar has three significant digits. */
function dollarsText(cost: number): string {
  return cost > 0 && cost < 1 ? BELOW_ONE.format(cost) : `$${cost.toFixed(2)}`;
}

/** Formats the cached share of the input tokens. Returns undefined if no cached tokens are reported. */
export function cachedText(usage: Usage | undefined): string | undefined {
  const share = usage?.cached_tokens === undefined ? undefined : cachedShareOf(usage);
  return share === undefined ? undefined : `${Math.round(share * 100)} % cached`;
}

/** Formats the token counts that are known, for example `165 tokens (120 in, 45 out)`. */
export function tokensText({ usage }: { usage?: Usage | undefined }): string | undefined {
  const { input_tokens: input, output_tokens: output, total_tokens: total } = usage ?? {};
  if (total === undefined) return undefined;
  const text = counted(total, 'token');
  if (input !== undefined && output !== undefined) return `${text} (${input} in, ${output} out)`;
  if (total === input) return `${text} in`;
  return total === output ? `${text} out` : text;
}
