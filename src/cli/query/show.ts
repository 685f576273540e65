import { writeFileSync } from 'node:fs';
import type { Command } from '@commander-js/extra-typings';
import { messageOf, visible, visibleJson } from '../../base/text.ts';
import { exactJson, parseExact } from '../../payload/fields.ts';
import type { Feedback } from '../../receiver/domain/feedback.ts';
import {
  PAYLOAD_FIELDS,
  type PayloadField,
  type RunDetails,
  type TraceSummary,
} from '../../receiver/domain/run-view.ts';
import { headWithRecords, type Records, recordWith } from '../../receiver/domain/trace/call-records.ts';
import { isCallType } from '../../run/calls/same-call.ts';
import { canonicalId } from '../../run/time.ts';
import { type CommandContext, CommandFailure, UsageError } from '../command-line.ts';
import type { RunSource } from '../stores.ts';
import { counted, inShellQuotes, timeText, visibleLines } from '../terminal-text.ts';
import {
  cachedText,
  dollarsText,
  drawTree,
  durationOf,
  type TreeOptions,
  tokensText,
  treeOptionsFor,
} from '../tree.ts';
import { withSource, withSourceOptions } from './run-source.ts';

const HELP = `
Exit code:
  0 on success; 1 if the trace or run is unknown, or there is no receiver and no file; 2 for invalid
  arguments`;

export function define(command: Command, { stdout }: CommandContext): void {
  withSourceOptions(
    command
      .description(
        'Shows a trace as a tree with the inputs and outputs of its root run, or a run with all its details. Without an id, shows the latest trace.',
      )
      .argument('[id]', "id of a trace or a run, or the start or end of a recent trace's id", idArgument)
      .option('--internal', 'also print the steps that frameworks such as LangGraph have added for themselves')
      .option('--full', 'print complete payloads instead of the first 2000 characters')
      .option('--json', 'print one JSON object: a trace that can be imported, or a run with its payloads')
      .option('--html <file>', 'save the trace as an HTML file that opens in any browser, with secrets masked'),
  )
    .addHelpText('after', HELP)
    .action((id, options) =>
      withSource(options, async (source) => {
        const [isFull, isInternalShown] = [options.full === true, options.internal === true];
        const view = { source, isFull, isInternalShown, ...treeOptionsFor(stdout) };
        if (options.html !== undefined) stdout.write(await saveHtml(source, id, options.html));
        else stdout.write(await (options.json ? jsonOf(source, id) : textOf(view, id)));
      }),
    );
}

export function idArgument(text: string): string {
  if (/^[0-9a-f-]{4,36}$/i.test(text)) return text.toLowerCase();
  throw new UsageError(`${inShellQuotes(text)} is not an id: expected four or more of the digits 0-9 and a-f`);
}

interface View extends TreeOptions {
  readonly source: RunSource;
  readonly isFull: boolean;
}

async function textOf(view: View, id: string | undefined): Promise<string> {
  const { source, paint } = view;
  const wanted = await completeId(source, id);
  const outline = await source.outline(wanted);
  if (outline.length === 0) return `${await runText(view, await foundRun(source, wanted))}\n`;
  const [summary] = (await source.traces({ filter: `trace:${wanted}` })).items;
  const root = await source.details(summary?.id ?? wanted);
  const outcome = summary?.outcome;
  const shown = outcome === 'failed_below' || outcome === 'incomplete' ? [outcome.replace('_', ' ')] : [];
  const facts = [`trace ${root?.trace_id ?? wanted}`, `started ${timeText(root?.start_time ?? '')}`, ...shown];
  const head = paint('detail', facts.join(', '));
  const contents = root === undefined ? [] : await contentsOf(view, await recordsOfCall(source, root), summary);
  const cost = root && costText(root);
  const costs = cost === undefined ? [] : [`${paint('type', 'cost')}\n${visible(cost)}`];
  return `${[head, drawTree(outline, view), ...costs, ...contents].join('\n\n')}\n`;
}

async function saveHtml(source: RunSource, id: string | undefined, file: string): Promise<string> {
  const wanted = await completeId(source, id);
  const html = await source.saved(wanted);
  if (html === undefined) throw new CommandFailure(`no trace has the id ${wanted}`);
  try {
    writeFileSync(file, html);
  } catch (error) {
    throw new CommandFailure(`cannot write the file: ${messageOf(error)}`);
  }
  return `saved trace ${wanted} to ${visible(file)}\n`;
}

async function jsonOf(source: RunSource, id: string | undefined): Promise<string> {
  const wanted = await completeId(source, id);
  const exported = (await source.outline(wanted)).length === 0 ? undefined : await source.exported(wanted);
  if (exported !== undefined) return `${visibleJson(exported)}\n`;
  const run = await foundRun(source, wanted);
  const complete: Record<string, unknown> = { ...run };
  for (const [field, payload] of await payloadsOf(source, [run])) complete[field] = payload;
  return `${visibleJson(exactJson(complete))}\n`;
}

export async function foundRun(source: RunSource, id: string): Promise<RunDetails> {
  const run = await source.details(id);
  if (run === undefined) throw new CommandFailure(`no trace or run has the id ${id}`);
  return run;
}

/** Number of recent traces that are searched for a partial id. */
const RECENT = 1_000;
const COMPLETE_ID = /^[0-9a-f]{8}-?([0-9a-f]{4}-?){3}[0-9a-f]{12}$/;

/** Completes a part of the id of a recent trace. Without an id, returns the id of the latest trace. */
export async function completeId(source: RunSource, id: string | undefined): Promise<string> {
  if (id !== undefined && COMPLETE_ID.test(id)) return canonicalId(id);
  const { items } = await source.traces({ limit: id === undefined ? 1 : RECENT });
  const [first, ...others] = items
    .map((trace) => trace.trace_id)
    .filter((traceId) => id === undefined || traceId.startsWith(id) || traceId.endsWith(id));
  if (first === undefined && id === undefined) throw new CommandFailure('there are no traces');
  if (first === undefined) {
    throw new CommandFailure(`none of the last ${RECENT} traces has an id that starts or ends with ${id}`);
  }
  if (others.length === 0) return first;
  throw new CommandFailure(
    `the ids of ${others.length + 1} recent traces start or end with ${id}; give more characters`,
  );
}

async function runText(view: View, given: RunDetails): Promise<string> {
  const { paint, source } = view;
  const records = await recordsOfCall(source, given);
  const run = headWithRecords(records);
  const cache = run.run_type === 'llm' ? await source.cache(run.id) : undefined;
  const facts: [string, string | undefined][] = [
    ['run', run.id],
    ['trace', run.trace_id],
    ['parent', run.parent_run_id],
    ['type', run.run_type],
    ['status', run.status],
    ['started', `${timeText(run.start_time)} (${run.start_time})`],
    ['took', durationOf(run)],
    ['model', run.model],
    ['tokens', tokensText(run)],
    ['cached', cacheText(run)],
    ['cost', costText(run)],
    ['cache', cache?.text],
    ['tags', run.tags?.join(', ')],
  ];
  const lines = facts.flatMap(([label, text]) =>
    text === undefined ? [] : `${paint('detail', label.padEnd(9))}${visible(text)}`,
  );
  const head = [paint('name', visible(run.name)), ...lines].join('\n');
  return [head, ...(await contentsOf(view, records))].join('\n\n');
}

export function costText({ usage, price_table: table, no_cost: reason }: RunDetails): string | undefined {
  const cost = usage?.total_cost;
  if (cost === undefined) return reason && `unknown: ${reason}`;
  return `${dollarsText(cost)} (${table === undefined ? 'reported by the run' : `by ${table}`})`;
}

/** Formats what caching did, for example `90 % cached (9000 tokens), saved $0.0405`. */
function cacheText({ usage }: RunDetails): string | undefined {
  const { cached_tokens: cached, cache_savings: savings } = usage ?? {};
  const texts = [cached === undefined ? undefined : `${cachedText(usage)} (${counted(cached, 'token')})`];
  if (savings !== undefined) texts.push(`${savings < 0 ? 'lost' : 'saved'} ${dollarsText(Math.abs(savings))}`);
  return texts.flatMap((text) => text ?? []).join(', ') || undefined;
}

/** Maximum number of characters printed per payload without `--full`. */
const SHOWN_MAX = 2_000;

/** Formats a run. If it is the root of `trace`, the inputs and outputs are those that lists show. */
async function contentsOf({ source, isFull, paint }: View, records: Records<RunDetails>, trace?: TraceSummary) {
  const run = headWithRecords(records);
  const section = (title: string, text: string): string => `${paint('type', title)}\n${text}`;
  const limited = (text: string): string => visibleLines(isFull ? text : shortened(text));
  const data = (title: string, value: unknown): string => section(title, limited(exactJson(value, 2)));
  const sections: string[] = [];
  if (run.error !== undefined) sections.push(section('error', paint('failure', limited(run.error))));
  if (run.extra?.metadata !== undefined) sections.push(data('metadata', run.extra.metadata));
  for (const [field, payload] of await payloadsOf(source, records, trace)) {
    if (field !== 'events' || isFull) sections.push(data(field, payload));
  }
  const attachments = (run.attachments ?? []).map(
    ({ name, mime_type, size }) => `${visible(name)} ${visible(mime_type)} ${size} bytes`,
  );
  if (attachments.length > 0) sections.push(section('attachments', attachments.join('\n')));
  if (run.feedback !== undefined) sections.push(section('feedback', run.feedback.map(feedbackLine).join('\n')));
  return sections;
}

async function payloadsOf(source: RunSource, records: Records<RunDetails>, summary?: TraceSummary) {
  const payloads: [string, unknown][] = [];
  const below = { inputs: summary?.trace.asked_run_id, outputs: summary?.trace.answered_run_id, events: undefined };
  for (const field of PAYLOAD_FIELDS) {
    const { [field]: id = records[0].id } = below;
    const json = id === records[0].id ? undefined : await source.payload(id, field);
    const payload = json === undefined ? await payloadOf(source, records, field) : parseExact(json);
    if (payload !== undefined) payloads.push([field, payload]);
  }
  return payloads;
}

/** Returns a payload of a call, or undefined if no record has it. */
export async function payloadOf(
  source: RunSource,
  records: Records<RunDetails>,
  field: PayloadField,
): Promise<unknown> {
  const { id, payload_sizes: sizes } = recordWith(records, field);
  const json = sizes[field] === undefined ? undefined : await source.payload(id, field);
  return json === undefined ? undefined : parseExact(json);
}

/** Returns a run and, if it is the head of a call, the further records of the call. */
export async function recordsOfCall(source: RunSource, run: RunDetails): Promise<Records<RunDetails>> {
  if (!isCallType(run.run_type) || run.same_call_as !== undefined) return [run];
  const others: RunDetails[] = [];
  for (const { id, same_call_as: head } of await source.outline(run.trace_id)) {
    const record = head === run.id ? await source.details(id) : undefined;
    if (record !== undefined) others.push(record);
  }
  return [run, ...others];
}

export function feedbackLine({ key, score, value, comment, correction }: Feedback): string {
  const parts = [
    score === undefined ? [] : `score ${score}`,
    value === undefined ? [] : exactJson(value),
    comment ?? [],
    correction === undefined ? [] : `correction ${exactJson(correction)}`,
  ].flat();
  return visible(`${key}: ${parts.length === 0 ? 'withdrawn' : parts.join(', ')}`);
}

function shortened(text: string): string {
  return text.length <= SHOWN_MAX ? text : `${text.slice(0, SHOWN_MAX)}… (${text.length} characters; --full shows all)`;
}
