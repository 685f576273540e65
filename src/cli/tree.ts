import { styleText } from 'node:util';
import { cachedShare, costFigure, durationFigure } from '../base/figures.ts';
import { depthFirst, forestOf, type Tree } from '../base/forest.ts';
import { visible } from '../base/text.ts';
import { environmentWith, variable } from '../config/environment.ts';
import { defined } from '../payload/fields.ts';
import { RUN_STATUSES, type RunOutline, type TraceOutcome, type Usage } from '../receiver/domain/run-view.ts';
import { sumOfUsage } from '../receiver/domain/summary.ts';
import { foldedCalls, sourcesOf, withoutInternal } from '../receiver/domain/trace/call-records.ts';
import { derivedTools, type TreeRun, withDerivedTools } from '../receiver/domain/trace/derived-tools.ts';
import { parseIsoTimestamp } from '../run/time.ts';
import type { Output } from './command-line.ts';
import { columnWidth, counted, cutToColumns } from './terminal-text.ts';

/** The parts of a drawing that have different colors. */
export type Ink = 'glyph' | 'name' | 'type' | 'detail' | 'notice' | 'failure';

export interface TreeOptions {
  /** Maximum width of a line in columns. Names are shortened first, then error messages. */
  readonly widthColumns: number;
  /** Adds color codes to text that has already been shortened, so that no code is cut. */
  readonly paint: (ink: Ink, text: string) => string;
  /**
   * Whether at least three consecutive equal siblings share a line. Runs are equal if they have the same name, type and
   * model, have succeeded, and the runs below them are equal.
   * @default false
   */
  readonly isFolded?: boolean;
  /**
   * Whether the steps that frameworks have added for themselves are drawn. Otherwise the last line counts them.
   * @default false
   */
  readonly isInternalShown?: boolean;
  /** Maximum number of lines. Further runs are only counted. @default 1000 */
  readonly linesMax?: number;
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

const LINES_MAX = 1_000;
/** Two lines tell more than one line that counts two runs. */
const FOLDED_MIN = 3;
const NAME_COLUMNS_MIN = 16;
const ERROR_COLUMNS_MIN = 24;
/** Maximum number of characters in a name or type in a drawing. */
const CHARACTERS_MAX = 1_000;
const SEPARATOR = ' · ';
/** Maximum number of decimals of a cost. A call of a few tokens costs less than a millionth of a dollar. */
const DECIMALS_MAX = 12;

const NOTICES: readonly TraceOutcome[] = ['cancelled', 'interrupted', 'failed_below', 'incomplete'];

type RunTree = Tree<TreeRun>;

interface Line {
  /** One tree, or several equal trees. */
  readonly trees: readonly RunTree[];
  readonly glyphs: string;
  readonly indent: string;
}

/**
 * Draws one line per run: name, type, duration, tokens, cost, cached share, and the headline of the error. A run that
 * was cancelled or interrupted, is incomplete or failed below shows that. Each trace is drawn as a separate tree. The
 * line of a root shows the tokens and the cost of all calls below, if there are several. Runs with a missing parent are
 * marked. The line of a call counts its further records, which have no lines of their own. Their child runs are drawn
 * below the call. The line of several equal runs shows their number, their shortest and longest duration, and the sum
 * of their tokens and costs. The line of a derived tool shows its longest possible duration.
 */
export function drawTree(runs: readonly RunOutline[], options: TreeOptions): string {
  const { widthColumns, paint, isFolded = false, isInternalShown = false, linesMax = LINES_MAX } = options;
  const folded = foldedCalls(runs);
  const all = withDerivedTools(folded.runs, derivedTools(runs));
  const shown = isInternalShown ? { runs: all, leftOut: 0 } : withoutInternal(all);
  const recordsOf = ({ run }: RunTree): readonly RunOutline[] => folded.records.get(run.id) ?? [];
  const forest = forestOf(shown.runs);
  const shapes = isFolded ? shapesOf(forest, (tree) => recordsOf(tree).length) : new Map<RunTree, number>();
  const pending: Line[] = foldedIn([forest], shapes)
    .map((trees) => ({ trees, glyphs: '', indent: '' }))
    .reverse();
  const lines: string[] = [];
  for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
    if (lines.length === linesMax) {
      lines.push(countOf([next, ...pending], paint));
      break;
    }
    const { trees, glyphs, indent } = next;
    const width = widthColumns - columnWidth(glyphs);
    const details = [
      ...(glyphs === '' ? totalTexts(trees) : []),
      ...(trees[0]?.isOrphan ? ['parent missing'] : []),
      ...sourceTexts(trees[0]?.run, trees.flatMap(recordsOf)),
    ];
    lines.push(paint('glyph', glyphs) + drawRuns(trees, details, { widthColumns: width, paint }));
    const lists = trees.map(({ children }) => children);
    const below = foldedIn(lists, shapes);
    for (const [index, children] of [...below.entries()].reverse()) {
      const isLast = index === below.length - 1;
      pending.push({
        trees: children,
        glyphs: shortened(indent + (isLast ? '└─ ' : '├─ '), widthColumns),
        indent: shortened(indent + (isLast ? '   ' : '│  '), widthColumns),
      });
    }
  }
  if (shown.leftOut > 0) lines.push(paint('detail', `+${counted(shown.leftOut, 'internal step')}`));
  return lines.join('\n');
}

/**
 * Returns a number for each tree. Equal trees have the same number. A run that has not succeeded equals no other run, so
 * the runs above it do not either.
 */
function shapesOf(forest: readonly RunTree[], recordsOf: (tree: RunTree) => number): Map<RunTree, number> {
  const numbers = new Map<string, number>();
  const shapes = new Map<RunTree, number>();
  // Child runs come before their parents.
  for (const [tree] of [...depthFirst(forest)].reverse()) {
    const { run, children, isOrphan } = tree;
    const { name, run_type, model, derived, status, id } = run;
    const isDerived = derived !== undefined;
    const own = [name, run_type, model, isDerived, isOrphan, recordsOf(tree), status === 'success' ? '' : id];
    const key = JSON.stringify([...own, ...children.map((child) => shapes.get(child))]);
    const number = numbers.get(key) ?? numbers.size;
    numbers.set(key, number);
    shapes.set(tree, number);
  }
  return shapes;
}

/**
 * Returns the trees of each line: equal siblings together, all others alone. `lists` has the child runs of each of the
 * equal runs on the line above. Trees without a number in `shapes` are alone.
 */
function foldedIn(lists: readonly (readonly RunTree[])[], shapes: ReadonlyMap<RunTree, number>) {
  const first = (lists[0] ?? []).map((tree) => shapes.get(tree) ?? tree);
  const lines: RunTree[][] = [];
  for (let from = 0, to = 0; from < first.length; from = to) {
    while (to < first.length && first[to] === first[from]) to += 1;
    const step = to - from < FOLDED_MIN ? 1 : to - from;
    for (let at = from; at < to; at += step) lines.push(lists.flatMap((list) => list.slice(at, at + step)));
  }
  return lines;
}

/** Counts the runs of lines that are not drawn, and those of them that have not succeeded. */
function countOf(lines: readonly Line[], paint: TreeOptions['paint']): string {
  const nodes = [...depthFirst(lines.flatMap(({ trees }) => trees))].map(([{ run }]) => run);
  const statuses = nodes.flatMap(({ derived, status }) => (derived === undefined ? status : []));
  const problems = RUN_STATUSES.flatMap((status) => {
    const count = status === 'success' ? 0 : statuses.filter((one) => one === status).length;
    if (count === 0) return [];
    return [status === 'error' ? paint('failure', `${count} failed`) : paint('notice', `${count} ${status}`)];
  });
  return [paint('detail', `… and ${statuses.length} more`), ...problems].join(paint('glyph', SEPARATOR));
}

/** Marks a derived tool, or counts the further records of a call: `+2 records of the same call (openai, fetch)`. */
export function sourceTexts(run: TreeRun | undefined, records: readonly RunOutline[]): string[] {
  if (run?.derived !== undefined) return ['from the messages'];
  if (records.length === 0) return [];
  const sources = visible(sourcesOf(records).slice(0, CHARACTERS_MAX));
  return [`+${counted(records.length, 'record')} of the same call${sources === '' ? '' : ` (${sources})`}`];
}

/** Cuts tree glyphs on the left, so that they fill at most half of the line. */
function shortened(glyphs: string, widthColumns: number): string {
  const columnsMax = Math.max(8, Math.floor(widthColumns / 2));
  return glyphs.length <= columnsMax ? glyphs : `…${glyphs.slice(1 - columnsMax)}`;
}

function drawRuns(trees: readonly RunTree[], more: readonly string[], options: TreeOptions): string {
  const runs = trees.map(({ run }) => run).sort((a, b) => (elapsedUs(a) ?? 0) - (elapsedUs(b) ?? 0));
  const [shortest, longest] = [runs[0] as RunOutline, runs.at(-1) as RunOutline];
  if (shortest === longest) return drawRun(shortest, more, options);
  const usage = runs.map((run) => run.usage).reduce(sumOfUsage);
  const durations = new Set([durationOf(shortest), durationOf(longest)]);
  const times = [`× ${runs.length}`, [...durations].join(' – ')];
  return drawRun({ ...shortest, ...(usage && { usage }) }, more, options, times);
}

/** Draws one run on one line. The texts in `more` come after the duration and the usage. */
export function drawRun(
  run: RunOutline & { readonly outcome?: TraceOutcome },
  more: readonly string[],
  { widthColumns, paint }: TreeOptions,
  times: readonly string[] = [durationOf(run)],
): string {
  const { error, outcome = run.status } = run;
  const ink = outcome === 'failed_below' ? 'notice' : 'failure';
  const type = cutToColumns(visible(run.run_type.slice(0, CHARACTERS_MAX)), NAME_COLUMNS_MIN);
  const details = [...times, ...usageTexts(run), ...more];
  const notice = NOTICES.includes(outcome) ? [outcome.replace('_', ' ')] : [];
  const facts = [type, ...details, ...notice].join(SEPARATOR);
  const failure = error === undefined ? '' : `${ink === 'notice' ? '⚠' : '✗'} ${visible(error)}`;

  const room = widthColumns - columnWidth(facts) - SEPARATOR.length;
  const failureMin = failure === '' ? 0 : SEPARATOR.length + Math.min(columnWidth(failure), ERROR_COLUMNS_MIN);
  const name = cutToColumns(visible(run.name.slice(0, CHARACTERS_MAX)), Math.max(NAME_COLUMNS_MIN, room - failureMin));
  const failureMax = Math.max(ERROR_COLUMNS_MIN, room - columnWidth(name) - SEPARATOR.length);

  return [
    paint(failure === '' ? 'name' : ink, name),
    paint('type', type),
    ...details.map((detail) => paint('detail', detail)),
    ...notice.map((status) => paint('notice', status)),
    ...(failure === '' ? [] : [paint(ink, cutToColumns(failure, failureMax))]),
  ].join(paint('glyph', SEPARATOR));
}

/** Formats the tokens and the cost of a trace with several calls. */
function totalTexts([root, ...others]: readonly RunTree[]): string[] {
  if (root === undefined || others.length > 0 || root.run.usage !== undefined) return [];
  const runs = [...depthFirst([root])].map(([{ run }]) => run);
  return sumTexts(runs, 2);
}

/** Formats the sum of the usage of calls. If the cost of a call is not known, the sum would be too low, and is omitted. */
export function sumTexts(runs: readonly TreeRun[], callsMin = 1): string[] {
  const calls = runs.flatMap((run) => (run.usage === undefined || run.usage_counts === false ? [] : run.usage));
  if (calls.length < callsMin) return [];
  const { input_tokens, output_tokens, total_tokens, total_cost } =
    calls.reduce<Usage | undefined>(sumOfUsage, undefined) ?? {};
  const cost = calls.every((usage) => usage.total_cost !== undefined) ? total_cost : undefined;
  return usageTexts({ usage: defined({ input_tokens, output_tokens, total_tokens, total_cost: cost }) });
}

type Times = Pick<TreeRun, 'start_time' | 'end_time' | 'derived'>;

export function durationOf(run: Times): string {
  if (run.end_time === undefined) return 'not ended';
  const us = elapsedUs(run);
  const text = us === undefined ? 'unknown time' : durationFigure(us / 1_000);
  return run.derived === undefined ? text : `≤ ${text}`;
}

function elapsedUs({ start_time, end_time = '' }: Times): number | undefined {
  const [startUs, endUs] = [parseIsoTimestamp(start_time), parseIsoTimestamp(end_time)];
  return startUs === undefined || endUs === undefined ? undefined : endUs - startUs;
}

/** Formats the usage that is known, for example `165 tokens (120 in, 45 out)`, `$0.0120` and `90 % cached`. */
export function usageTexts({ usage }: Pick<RunOutline, 'usage'>): string[] {
  const cost = usage?.total_cost;
  return [tokensText({ usage }), cost === undefined ? undefined : dollarsText(cost), cachedText(usage)].flatMap(
    (text) => text ?? [],
  );
}

/** Formats a cost with three significant digits, or with cents from 1 dollar. */
export function dollarsText(cost: number): string {
  return costFigure(cost, DECIMALS_MAX, 3);
}

/** Formats the cached share of the input tokens. Returns undefined if no cached tokens are reported. */
export function cachedText(usage: Usage | undefined): string | undefined {
  const share = cachedShare(usage);
  return share && `${share} cached`;
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
