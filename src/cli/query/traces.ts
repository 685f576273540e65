import { type Command, InvalidArgumentError, Option } from '@commander-js/extra-typings';
import { clock } from '../../base/clock.ts';
import { visibleJson } from '../../base/text.ts';
import { defined } from '../../payload/fields.ts';
import type { ListQuery, Page } from '../../receiver/query/query.ts';
import { RUN_STATUSES, type TraceSummary } from '../../receiver/store/run-view.ts';
import { isoTimestamp, parseIsoTimestamp } from '../../run/time.ts';
import { type CommandContext, collect, collectFrom, durationMs, wholeNumber } from '../command-line.ts';
import type { RunSource } from '../stores.ts';
import { counted, timeText } from '../terminal-text.ts';
import { drawRun, type TreeOptions, tokensText, treeOptionsFor } from '../tree.ts';
import { withSource, withSourceOptions } from './run-source.ts';

const HELP = `
A trace must match all options. --project, --name and --tag apply to the root run. --status, --type
and --model must match the same run of the trace. Without --type and --model, --status success
applies to the root run.

Exit code:
  0 on success; 1 if there is no receiver and no file; 2 for invalid arguments`;

export function define(command: Command, { stdout }: CommandContext): void {
  withSourceOptions(
    command
      .description(
        'Lists traces, the latest first. Each line shows the start time, the end of the id, the root run and totals.',
      )
      .option('--project <name>', 'project')
      .option('--name <name>', 'name of the root run')
      .addOption(
        new Option('--status <status>', 'status of a run; repeat to match any of several statuses')
          .choices(RUN_STATUSES)
          .argParser(collectFrom(RUN_STATUSES)),
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
    .action(async (options) => {
      const { project, name, status, type: runType, model, tag, text, since: startedFrom, limit, json } = options;
      const query = defined({ project, name, status, runType, model, tag, text, startedFrom, limit });
      await withSource(options, async (source) => {
        stdout.write(await listTraces(source, query, json === true, treeOptionsFor(stdout)));
      });
    });
}

function startTime(text: string): string {
  const ms = durationMs(text);
  if (ms !== undefined) return isoTimestamp(Math.max(0, clock.nowUs() - ms * 1_000));
  const time = parseIsoTimestamp(text) === undefined ? localTime(text) : text;
  if (time !== undefined) return time;
  throw new InvalidArgumentError('Expected 15m, 2h, 7d, 2026-01-31 or 2026-01-31T09:00, for example.');
}

/** Parses a date or time without a time zone as local time. */
function localTime(text: string): string | undefined {
  const [, day = '', time = '00:00'] = /^(\d{4}-\d\d-\d\d)(?:[T ](\d\d:\d\d(?::\d\d)?))?$/.exec(text) ?? [];
  const at = new Date(`${day}T${time}`);
  // `Date` parses 31 April as 1 May, so such a date is rejected here.
  if (at.getDate() !== Number(day.slice(-2))) return undefined;
  return isoTimestamp(Math.max(0, at.getTime() * 1_000));
}

async function listTraces(source: RunSource, query: ListQuery, isJson: boolean, options: TreeOptions): Promise<string> {
  const { status, runType, model } = query;
  // Almost every trace contains a successful run. If no run type or model is given, a filter for `success` applies only
  // to the root.
  const isOfRoot = runType === undefined && model === undefined && (status?.includes('success') ?? true);
  const { items, next } = await (isOfRoot ? source.traces(query) : tracesWithRun(source, query));
  if (isJson) return items.map((trace) => `${visibleJson(JSON.stringify(trace))}\n`).join('');
  if (items.length === 0) return 'no traces\n';
  const lines = items.map((trace) => lineOf(trace, options));
  return `${[...lines, ...(next === undefined ? [] : ['… more traces match; raise --limit to see them'])].join('\n')}\n`;
}

const RUNS_PAGE = 1_000;

/**
 * Returns traces that contain a run with the given status, type and model. The root run must match all other filters.
 */
async function tracesWithRun(
  source: RunSource,
  { status, runType, model, limit = Number.POSITIVE_INFINITY, ...ofRoot }: ListQuery,
): Promise<Page<TraceSummary>> {
  // No run starts before its root run, so the earliest start time applies to all runs.
  const ofRun = defined({ status, runType, model, startedFrom: ofRoot.startedFrom });
  const seen = new Set<string>();
  const found: TraceSummary[] = [];
  let cursor: string | undefined;
  do {
    const page = await source.list({ limit: RUNS_PAGE, ...ofRun, ...(cursor && { cursor }) });
    for (const { trace_id: traceId } of page.items) {
      if (seen.has(traceId)) continue;
      seen.add(traceId);
      const { items } = await source.traces({ ...ofRoot, traceId, limit: 1 });
      found.push(...items);
      if (found.length > limit) return { items: latestFirst(found.slice(0, limit)), next: '' };
    }
    cursor = page.next;
  } while (cursor !== undefined);
  return { items: latestFirst(found) };
}

function latestFirst(traces: TraceSummary[]): TraceSummary[] {
  return traces.sort((one, other) => (one.start_time < other.start_time ? 1 : -1));
}

/**
 * Number of characters to show from the end of an id. Ids begin with the time, so their first characters are similar.
 */
const SHORT_ID = 12;

function lineOf(trace: TraceSummary, { widthColumns, paint }: TreeOptions): string {
  const { runs, errors, pending, usage } = trace.trace;
  const head = `${timeText(trace.start_time)}  ${trace.trace_id.slice(-SHORT_ID)}  `;
  const below = errors - (trace.status === 'error' ? 1 : 0);
  const more = [
    runs === 1 ? [] : counted(runs, 'run'),
    below > 0 ? `${below} failed below` : [],
    pending > 0 && trace.status !== 'pending' ? `${pending} not ended` : [],
    trace.usage === undefined && usage !== undefined ? (tokensText({ usage }) ?? []) : [],
  ].flat();
  return paint('detail', head) + drawRun(trace, more, { widthColumns: widthColumns - head.length, paint });
}
