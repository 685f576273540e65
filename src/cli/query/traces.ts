import { type Command, InvalidArgumentError, Option } from '@commander-js/extra-typings';
import { visible, visibleJson } from '../../base/text.ts';
import { defined } from '../../payload/fields.ts';
import type { ListQuery } from '../../receiver/domain/query/query.ts';
import type { TraceSummary } from '../../receiver/domain/run-view.ts';
import {
  absoluteText,
  condition,
  failedBelowInstead,
  parseFilter,
  problemIn,
  STATUSES,
  searchWords,
} from '../../receiver/filter/parser.ts';
import { toIsoTime } from '../../receiver/filter/values.ts';
import { type CommandContext, collect, collectFrom, UsageError, wholeNumber } from '../command-line.ts';
import type { RunSource } from '../stores.ts';
import { counted, inShellQuotes, timeText } from '../terminal-text.ts';
import { drawRun, type TreeOptions, treeOptionsFor, usageTexts } from '../tree.ts';
import { withSource, withSourceOptions } from './run-source.ts';

const HELP = `
The filter has the same syntax as on the page, for example 'status:error user:ada latency>2s'.

A trace must match the filter and all options. The filter, --project, --name and --tag apply to the
root run, and status: and --status to the outcome of the trace. With --type or --model, --status,
--type and --model must match the same run of the trace.

Exit code:
  0 on success; 1 if there is no receiver and no file; 2 for invalid arguments`;

export function define(command: Command, { stdout }: CommandContext): void {
  withSourceOptions(
    command
      .description(
        'Lists traces, the latest first. Each line shows the start time, the end of the id, the root run and totals.',
      )
      .argument('[filter...]', 'conditions and search words')
      .option('--project <name>', 'project')
      .option('--name <name>', 'name of the root run')
      .addOption(
        new Option('--status <status>', 'outcome of the trace; repeat to match any of several')
          .choices(STATUSES)
          .argParser(collectFrom(STATUSES)),
      )
      .option('--type <type>', 'type of a run')
      .option('--model <model>', 'model of a run')
      .option('--tag <tag>', 'tag of the root run; repeat to require several tags', collect)
      .option('--text <words>', 'words in any run; put a phrase in double quotes')
      .option(
        '--since <time>',
        'earliest start, for example 15m, 2h, 7d, 2026-01-31 or 2026-01-31T09:00 (local time)',
        startTime,
      )
      .option('--limit <n>', 'number of traces, from 1 to 1000', wholeNumber(1, 1_000), 20)
      .option('--json', 'print each trace as one line of JSON'),
  )
    .addHelpText('after', HELP)
    .action(async (filter, options) => {
      const { project, limit, json } = options;
      const given = [...filter, ...conditionsOf(options)].join(' ').trim();
      const query = defined({ project, filter: checkedFilter(given), limit });
      await withSource(options, async (source) => {
        stdout.write(await listTraces(source, query, json === true, treeOptionsFor(stdout)));
      });
    });
}

/** Returns a filter with absolute times, or undefined if it has no conditions. Throws if the filter is invalid. */
export function checkedFilter(text: string): string | undefined {
  const terms = parseFilter(text, Date.now());
  const problem = problemIn(terms);
  if (problem !== undefined) throw new UsageError(`invalid filter: ${visible(problem)}`);
  return absoluteText(terms) || undefined;
}

export function startTime(text: string): string {
  const time = toIsoTime(text, Date.now());
  if (time !== undefined) return time;
  throw new InvalidArgumentError('Expected 15m, 2h, 7d, 2026-01-31 or 2026-01-31T09:00, for example.');
}

interface FilterOptions {
  readonly name?: string | undefined;
  readonly status?: readonly string[] | undefined;
  readonly type?: string | undefined;
  readonly model?: string | undefined;
  readonly tag?: readonly string[] | undefined;
  readonly text?: string | undefined;
  readonly since?: string | undefined;
}

function conditionsOf({ name, status, type, model, tag = [], text = '', since }: FilterOptions): string[] {
  const ofRun = Object.entries(defined({ status, type, model })).map(([key, value]) =>
    condition(key, ...[value].flat()),
  );
  const isOfTrace = type === undefined && model === undefined;
  return [
    ...(name === undefined ? [] : [condition('name', name)]),
    ...tag.map((one) => condition('tag', one)),
    ...(isOfTrace ? ofRun : [`any(${ofRun.join(' ')})`]),
    ...(since === undefined ? [] : [`since:${since}`]),
    searchWords(text),
  ];
}

async function listTraces(source: RunSource, query: ListQuery, isJson: boolean, options: TreeOptions): Promise<string> {
  const { items, next } = await source.traces(query);
  if (isJson) return items.map((trace) => `${visibleJson(JSON.stringify(trace))}\n`).join('');
  if (items.length === 0) return `${['no traces', ...(await failedBelow(source, query))].join('\n')}\n`;
  const lines = items.map((trace) => lineOf(trace, options));
  return `${[...lines, ...(next === undefined ? [] : ['… more traces match; raise --limit to see them'])].join('\n')}\n`;
}

/** Returns a sentence for a list without matches if traces with the outcome `failed_below` match instead of `error`. */
export async function failedBelow(source: RunSource, { project, filter = '' }: ListQuery): Promise<string[]> {
  const instead = failedBelowInstead(parseFilter(filter, Date.now()));
  const found = instead && (await source.traces(defined({ project, filter: instead, limit: 1 })));
  return found && found.items.length > 0 ? [`traces with a failed run match ${inShellQuotes(instead)}`] : [];
}

/**
 * Number of characters to show from the end of an id. Ids begin with the time, so their first characters are similar.
 */
const SHORT_ID = 12;

function lineOf(trace: TraceSummary, { widthColumns, paint }: TreeOptions): string {
  const { runs, errors, pending, usage } = trace.trace;
  const head = `${timeText(trace.start_time)}  ${trace.trace_id.slice(-SHORT_ID)}  `;
  const below = errors - (trace.outcome === 'error' ? 1 : 0);
  const more = [
    runs === 1 ? [] : counted(runs, 'run'),
    below > 0 ? `${below} failed` : [],
    pending > 0 && trace.outcome !== 'pending' ? `${pending} not ended` : [],
    trace.usage === undefined && usage !== undefined ? usageTexts({ usage }) : [],
  ].flat();
  return paint('detail', head) + drawRun(trace, more, { widthColumns: widthColumns - head.length, paint });
}
