import { visible, visibleJson } from '../base/text.ts';
import type { Feedback } from '../receiver/feedback/feedback.ts';
import type { RunDetails, RunOutline } from '../receiver/store/run-view.ts';
import { PAYLOAD_FIELDS } from '../receiver/store/told-run.ts';
import { canonicalId } from '../run/time.ts';
import type { ShowInvocation } from './query-arguments.ts';
import type { RunSource } from './run-source.ts';
import { momentText } from './traces.ts';
import { drawTree, type TreeOptions, timeText, tokensText } from './tree.ts';

/** Traces among which the one is looked for of whose id a part was given. */
const RECENT = 1_000;
/** Characters of a payload that are shown. */
const SHOWN_MAX = 2_000;
/** A whole id, in either spelling. */
const WHOLE_ID = /^[0-9a-f]{8}-?([0-9a-f]{4}-?){3}[0-9a-f]{12}$/;

/** What is printed of a trace or a run; throws in words for the user when it is not there. */
export async function showRun(
  source: RunSource,
  { id, isFull, isJson }: Pick<ShowInvocation, 'id' | 'isFull' | 'isJson'>,
  options: Required<TreeOptions>,
): Promise<string> {
  const wanted = await wholeId(source, id);
  const outline = await source.outline(wanted);
  if (outline.length > 0 && !isJson) return traceText(source, wanted, outline, isFull, options);
  const exported = outline.length > 0 ? await source.exported(wanted) : undefined;
  if (exported !== undefined) return `${visibleJson(exported)}\n`;
  const run = await source.details(wanted);
  if (run === undefined) throw new Error(`there is no trace and no run ${wanted}`);
  return isJson ? `${await runJson(source, run)}\n` : runText(source, run, isFull, options);
}

async function wholeId(source: RunSource, id: string | undefined): Promise<string> {
  if (id !== undefined && WHOLE_ID.test(id)) return canonicalId(id);
  const { items } = await source.traces({ limit: id === undefined ? 1 : RECENT });
  const found = items.filter(
    ({ trace_id: traceId }) => id === undefined || traceId.startsWith(id) || traceId.endsWith(id),
  );
  const [first, another] = found;
  if (first === undefined) {
    throw new Error(
      id === undefined
        ? 'there are no traces'
        : `none of the last ${RECENT} traces has an id that begins or ends with ${id}`,
    );
  }
  if (another !== undefined)
    throw new Error(`${found.length} of the last traces have ids that begin or end with ${id}; give more of it`);
  return first.trace_id;
}

async function traceText(
  source: RunSource,
  traceId: string,
  outline: readonly RunOutline[],
  isFull: boolean,
  options: Required<TreeOptions>,
): Promise<string> {
  const root = await source.details((outline.find(({ id }) => id === traceId) ?? outline[0])?.id ?? traceId);
  const { paint } = options;
  const head = paint('detail', `trace ${traceId}, started ${momentText(root?.start_time ?? '')}`);
  const parts = [`${head}\n\n${drawTree(outline, options)}`];
  if (root !== undefined) parts.push(...(await contentsOf(source, root, isFull, options)));
  return `${parts.join('\n\n')}\n`;
}

async function runText(
  source: RunSource,
  run: RunDetails,
  isFull: boolean,
  options: Required<TreeOptions>,
): Promise<string> {
  const facts: [string, string | undefined][] = [
    ['run', run.id],
    ['trace', run.trace_id],
    ['parent', run.parent_run_id],
    ['type', run.run_type],
    ['status', run.status],
    ['started', `${momentText(run.start_time)} (${run.start_time})`],
    ['took', timeText(run)],
    ['model', run.model],
    ['tokens', tokensText(run)],
    ['tags', run.tags?.join(', ')],
  ];
  const { paint } = options;
  const lines = facts.flatMap(([label, text]) =>
    text === undefined ? [] : `${paint('detail', label.padEnd(9))}${visible(text)}`,
  );
  const parts = [
    `${paint('name', visible(run.name))}\n${lines.join('\n')}`,
    ...(await contentsOf(source, run, isFull, options)),
  ];
  return `${parts.join('\n\n')}\n`;
}

/** What stands below the head: error, metadata, payloads, attachments and what is said of it, each under its name. */
async function contentsOf(
  source: RunSource,
  run: RunDetails,
  isFull: boolean,
  { paint }: Required<TreeOptions>,
): Promise<string[]> {
  const section = (title: string, text: string): string => `${paint('type', title)}\n${text}`;
  const limited = (text: string): string => shownLines(isFull ? text : cutText(text));
  const parts: string[] = [];
  if (run.error !== undefined) parts.push(section('error', paint('failure', limited(run.error))));
  if (run.extra?.metadata !== undefined)
    parts.push(section('metadata', limited(JSON.stringify(run.extra.metadata, null, 2))));
  for (const field of PAYLOAD_FIELDS) {
    if (run.payload_sizes[field] === undefined || (field === 'events' && !isFull)) continue;
    const json = await source.payload(run.id, field);
    if (json !== undefined) parts.push(section(field, limited(JSON.stringify(JSON.parse(json), null, 2))));
  }
  const attachments = (run.attachments ?? []).map(
    ({ name, mime_type, size }) => `${visible(name)} ${visible(mime_type)} ${size} bytes`,
  );
  if (attachments.length > 0) parts.push(section('attachments', attachments.join('\n')));
  if (run.feedback !== undefined) parts.push(section('feedback', run.feedback.map(feedbackLine).join('\n')));
  return parts;
}

function feedbackLine({ key, score, value, comment, correction }: Feedback): string {
  const said = [
    score === undefined ? [] : `score ${score}`,
    value === undefined ? [] : JSON.stringify(value),
    comment ?? [],
    correction === undefined ? [] : `correction ${JSON.stringify(correction)}`,
  ].flat();
  return visible(`${key}: ${said.length === 0 ? 'taken back' : said.join(', ')}`);
}

async function runJson(source: RunSource, run: RunDetails): Promise<string> {
  const whole: Record<string, unknown> = { ...run };
  for (const field of PAYLOAD_FIELDS) {
    const json = run.payload_sizes[field] === undefined ? undefined : await source.payload(run.id, field);
    if (json !== undefined) whole[field] = JSON.parse(json);
  }
  return visibleJson(JSON.stringify(whole));
}

function cutText(text: string): string {
  return text.length <= SHOWN_MAX ? text : `${text.slice(0, SHOWN_MAX)}… (${text.length} characters; --full shows all)`;
}

/** Line by line, so that breaks stay and nothing else steers the terminal. */
function shownLines(text: string): string {
  return text.split(/\r?\n/).map(visible).join('\n');
}
