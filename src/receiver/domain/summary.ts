import { cut } from '../../base/text.ts';
import { definedOrNone, exactJson, fieldsOf, filled, firstText, idTextOf } from '../../payload/fields.ts';
import { isCallType, MODEL_TYPES, SAME_CALL_USAGE, TOOL_CALL_ID, USAGE } from '../../run/calls/same-call.ts';
import { endReasonOf } from '../../run/record.ts';
import { parseIsoTimestamp } from '../../run/time.ts';
import { callsInOutputs, resultsInInputs } from '../../services/conversation.ts';
import { comparable } from './comparable.ts';
import { outputsUsageOf, set, tierOf, usageIn } from './cost/usage.ts';
import type { RunFields } from './run-message.ts';
import {
  type CalledTool,
  type CostSource,
  type PayloadField,
  type RunOutline,
  type RunStatus,
  type RunSummary,
  storable,
  type ToolMessages,
  type ToolOutcome,
  type UnpricedUsage,
  type Usage,
} from './run-view.ts';
import { headlineOf } from './trace/headline.ts';
import { inputsPreview, outputsPreview } from './trace/preview.ts';
import { type RequestFacts, recordSource, requestFactsOf } from './trace/repeated-calls.ts';

export interface PayloadFacts extends RequestFacts, ToolFacts {
  /** Whether the inputs, or the outputs, are more than an empty object. */
  asks?: boolean;
  answers?: boolean;
  /** The status code in the outputs of an HTTP request or of a call, see `isErrorResponse`. */
  http_status?: number;
  inputs_preview?: string;
  outputs_preview?: string;
  outputs_usage?: UnpricedUsage;
  first_token_time?: string;
}

export type SmallFields = Omit<RunFields, 'inputs' | 'outputs' | 'events'>;

const FIRST_TOKEN_EVENT = 'new_token';

export type StoredFacts = { readonly [Field in PayloadField]?: PayloadFacts | undefined };

/** What a store keeps about a run, so that it can calculate the cost without the payloads. */
export type StoredRunFacts = StoredFacts & { readonly cost?: CostSource };

export function factsIn({ inputs, outputs, events }: StoredFacts): PayloadFacts {
  return Object.assign({}, inputs, outputs, events);
}

export function payloadFacts(fields: RunFields): PayloadFacts {
  return { ...previewsIn(fields), ...factsWithoutPreviews(fields) };
}

/** Returns the metadata about one payload of a message, with its preview and what it tells about tools if it has them. */
export function payloadFactsOf(
  fields: RunFields,
  field: PayloadField,
  { hasPreview, hasTools }: { readonly hasPreview: boolean; readonly hasTools: boolean },
): PayloadFacts {
  const payload: RunFields = { [field]: fields[field], ...(fields.run_type && { run_type: fields.run_type }) };
  return { ...(hasPreview && previewsIn(payload)), ...factsWithoutPreviews(payload, hasTools) };
}

export function previewsIn(fields: RunFields): PayloadFacts {
  const facts: PayloadFacts = {};
  set(facts, 'inputs_preview', inputsPreview(fields));
  set(facts, 'outputs_preview', outputsPreview(fields));
  return facts;
}

function factsWithoutPreviews(fields: RunFields, hasTools = true): PayloadFacts {
  const { inputs, outputs, events } = fields;
  const facts: PayloadFacts = requestFactsOf(fields);
  if (hasTools) Object.assign(facts, toolFactsOf(fields));
  if (isFilled(inputs)) facts.asks = true;
  if (isFilled(outputs)) facts.answers = true;
  const { status_code, status = status_code } = fieldsOf(outputs);
  if (typeof status === 'number') facts.http_status = status;
  set(facts, 'outputs_usage', outputsUsageOf(outputs));
  const firstToken: unknown = events?.find(({ name }) => name === FIRST_TOKEN_EVENT)?.time;
  if (typeof firstToken === 'string' && parseIsoTimestamp(firstToken) !== undefined)
    facts.first_token_time = firstToken;
  return facts;
}

function isFilled(payload: unknown): boolean {
  return payload !== undefined && payload !== null && Object.keys(payload).length > 0;
}

/** Returns a run as it appears in a list. Returns undefined if the name, type or start time is missing. */
export function summaryOf(
  id: string,
  traceId: string,
  fields: SmallFields,
  facts: PayloadFacts,
): RunSummary | undefined {
  const { name, run_type, start_time, parent_run_id, end_time, error, session_name, session_id, tags } = fields;
  if (name === undefined || run_type === undefined || start_time === undefined) return undefined;
  const { inputs_preview, outputs_preview, first_token_time, outputs_usage } = facts;
  const isContent = fieldsOf(fields.extra?.metadata?.otel).protocol === undefined;
  const [shownName, type] = [comparable(name), comparable(run_type)];
  const status = statusOf(fields);
  const summary: RunSummary = { id, trace_id: traceId, name: shownName, run_type: type, status, start_time };
  if (isContent) {
    set(summary, 'inputs_preview', inputs_preview);
    if (!isErrorResponse(fields, facts)) set(summary, 'outputs_preview', outputs_preview);
  }
  set(summary, 'first_token_time', first_token_time);
  set(summary, 'parent_run_id', parent_run_id);
  set(summary, 'end_time', end_time);
  set(summary, 'error', error === undefined || error === '' ? undefined : headlineOf(error));
  setText(summary, 'model', modelOf(fields));
  if (isCallType(type)) setText(summary, 'recorded_by', recordSource(fields));
  setText(summary, 'tool_call_id', idTextOf(fields.extra?.metadata?.[TOOL_CALL_ID]));
  set(summary, 'usage', usageOf(outputs_usage, fields.extra?.metadata));
  setText(summary, 'session_name', session_name);
  setText(summary, 'session_id', session_id);
  setText(summary, 'thread', firstText(...THREAD_KEYS.map((key) => idTextOf(fields.extra?.metadata?.[key]))));
  setText(summary, 'user', idTextOf(fields.extra?.metadata?.user_id));
  set(summary, 'tags', tags?.map(comparable));
  set(summary, 'internal', isInternalStep(fields) || undefined);
  return summary;
}

/** Returns the texts that `summaryOf` cuts, in full. Those of the metadata are in `extra`. */
export function wholeTexts({ name, session_name, tags }: SmallFields): Partial<RunSummary> {
  const project = session_name && { session_name: storable(session_name) };
  return { ...(name && { name: storable(name) }), ...project, ...(tags && { tags: tags.map(storable) }) };
}

/** Returns whether the outputs are the response with which a service has refused a call that `fetch` has recorded. */
export function isErrorResponse(fields: SmallFields, { http_status }: PayloadFacts): boolean {
  return http_status !== undefined && recordSource(fields) === 'fetch' && statusOf(fields) === 'error';
}

/** Returns the short form of a run. Copies each field explicitly, because a trace may have 100,000 runs. */
export function outlineOfSummary(summary: RunSummary, tools?: ToolMessages): RunOutline {
  const { id, parent_run_id, name, run_type, status, start_time, end_time, error, model, usage } = summary;
  const outline: RunOutline = { id, name, run_type, status, start_time };
  set(outline, 'parent_run_id', parent_run_id);
  set(outline, 'end_time', end_time);
  set(outline, 'error', error);
  set(outline, 'model', model);
  set(outline, 'usage', usage && { ...usage });
  set(outline, 'first_token_time', summary.first_token_time);
  set(outline, 'tool_call_id', summary.tool_call_id);
  set(outline, 'tools', tools);
  set(outline, 'recorded_by', summary.recorded_by);
  set(outline, 'same_call_as', summary.same_call_as);
  set(outline, 'usage_counts', summary.usage_counts);
  set(outline, 'internal', summary.internal);
  return outline;
}

/** Returns what the messages of a run tell about tools, if it is a model call. */
export function toolsIn({ run_type }: RunSummary, facts: ToolFacts): ToolMessages | undefined {
  return run_type === 'llm' ? definedOrNone({ calls: facts.tool_calls, results: facts.tool_results }) : undefined;
}

export function statusOf({ error, end_time, extra }: SmallFields): RunStatus {
  const reason = endReasonOf({ extra });
  if (reason !== undefined) return reason;
  if (error !== undefined && error !== '') return 'error';
  return end_time === undefined ? 'pending' : 'success';
}

/**
 * Returns whether the usage of a run counts towards totals, if no other run records the same call. Model calls count. Other
 * runs often repeat the usage of nested runs, so they count only if no nested run has usage.
 */
export function countsUsage(runType: string, hasUsageBelow: boolean): boolean {
  return MODEL_TYPES.includes(runType) || !hasUsageBelow;
}

export function sumOfUsage(a: Usage | undefined, b: Usage | undefined): Usage | undefined {
  if (a === undefined || b === undefined) return a ?? b;
  const sum: Usage = {};
  for (const key of USAGE_KEYS) {
    if (a[key] !== undefined || b[key] !== undefined) sum[key] = (a[key] ?? 0) + (b[key] ?? 0);
  }
  return sum;
}

/** Merges the fields of two records of a run. Fields in `later` take precedence. */
export function merged<Fields extends Pick<RunFields, 'extra'>>(earlier: Fields, later: Fields): Fields {
  const fields = { ...earlier, ...later };
  if (earlier.extra !== undefined && later.extra !== undefined) {
    fields.extra = { ...earlier.extra, ...later.extra };
    if (earlier.extra.metadata !== undefined && later.extra.metadata !== undefined) {
      fields.extra.metadata = { ...earlier.extra.metadata, ...later.extra.metadata };
    }
  }
  return fields;
}

export const USAGE_KEYS: readonly (keyof Usage)[] = [
  ...(['input_tokens', 'output_tokens', 'total_tokens', 'total_cost', 'cached_tokens', 'cache_savings'] as const),
];

/**
 * Returns the usage in the outputs or in the metadata, with the service and the service tier in the metadata. The usage of
 * a run that names another record of its call is under another key, and is complete even if the outputs are not.
 */
function usageOf(ofOutputs: UnpricedUsage | undefined, metadata: Metadata): UnpricedUsage | undefined {
  const moved = usageIn(metadata?.[SAME_CALL_USAGE]);
  const usage = moved
    ? { ...moved, details: { ...ofOutputs?.details, ...moved.details } }
    : (ofOutputs ?? usageIn(metadata?.[USAGE]));
  if (usage === undefined || metadata === undefined) return usage;
  const { ls_provider: provider, service_tier } = metadata;
  const tier = service_tier === undefined ? undefined : tierOf(service_tier);
  const named = typeof provider === 'string' ? { ...usage, provider } : usage;
  return tier === undefined || usage.details === undefined ? named : { ...named, details: { tier, ...usage.details } };
}

function modelOf({ extra: { metadata, invocation_params } = {} }: SmallFields): string | undefined {
  const [outer, inner] = [fieldsOf(invocation_params), fieldsOf(metadata?.ls_invocation_params)];
  return firstText(metadata?.ls_model_name, outer.model ?? outer.model_name, inner.model ?? inner.model_name);
}

type Metadata = NonNullable<SmallFields['extra']>['metadata'];

/** Metadata keys that identify a conversation. The first key whose value is a text or a number is used. */
const THREAD_KEYS: readonly string[] = ['thread_id', 'session_id', 'conversation_id'];

type TextKey = 'model' | 'recorded_by' | 'tool_call_id' | 'session_name' | 'session_id' | 'thread' | 'user';

function setText(summary: RunSummary, key: TextKey, value: string | undefined): void {
  if (value !== undefined) summary[key] = comparable(value);
}

interface ToolFacts {
  tool_calls?: CalledTool[];
  tool_results?: ToolOutcome[];
}

const TOOL_TEXT_MAX = 200;
/** Maximum size of the facts about a payload, in bytes of JSON. */
const TOOL_BYTES_MAX = 4_096;

/** Returns the tool calls and results in the messages of a model call. The run type may be in another message. */
function toolFactsOf({ run_type: type = 'llm', inputs, outputs }: RunFields): ToolFacts {
  const facts: ToolFacts = {};
  if (type !== 'llm') return facts;
  if (outputs !== undefined) set(facts, 'tool_calls', fitting(callsInOutputs(outputs), calledTool));
  if (inputs !== undefined) set(facts, 'tool_results', fitting(resultsInInputs(inputs), outcomeOf));
  return facts;
}

function calledTool({ id, name, input }: ReturnType<typeof callsInOutputs>[number]): CalledTool {
  const args = toolText(input);
  return { id: id ?? `${name}(${args})`, name, arguments: args };
}

function outcomeOf(result: ReturnType<typeof resultsInInputs>[number]): ToolOutcome | undefined {
  const { call, id = call && calledTool(call).id, value, isError } = result;
  return id === undefined ? undefined : { id, text: toolText(value), ...(isError && { is_error: true }) };
}

function toolText(value: unknown): string {
  return cut(typeof value === 'string' ? value : (exactJson(value) ?? ''), TOOL_TEXT_MAX);
}

/** Converts the first items, as many as fit. Returns undefined if none does. */
function fitting<Given, Item>(given: readonly Given[], convert: (one: Given) => Item | undefined): Item[] | undefined {
  const items: Item[] = [];
  let bytes = 0;
  for (const one of given) {
    const item = convert(one);
    if (item === undefined) continue;
    bytes += Buffer.byteLength(JSON.stringify(item)) + 1;
    if (bytes > TOOL_BYTES_MAX) break;
    items.push(item);
  }
  return filled(items);
}

/** The tag with which LangGraph marks its own steps. */
const HIDDEN_TAG = 'langsmith:hidden';

/** Names that only LangChain and LangGraph give, to the steps that they add to those of the application. */
const INTERNAL_NAMES =
  /^(?:__start__|__end__|LangGraphUpdateState|Runnable(?:Lambda|Sequence|Parallel|Map|Passthrough|Assign)|Channel(?:Write|Read)(?:<.*>)?|Branch<.*>)$/s;

/** What `createAgent` of LangChain writes to `ls_integration`, and the nodes that contain its model calls and tools. */
const [AGENT, AGENT_NODES] = ['langchain_create_agent', ['model_request', 'tools']];

/**
 * Returns whether a framework has added a run for itself. A name that an application may also use counts only if the
 * metadata tell that LangGraph has recorded the run. A model call, a tool or a retriever never counts.
 */
function isInternalStep({ name = '', run_type, tags, extra }: RunFields): boolean {
  if (run_type !== 'chain') return false;
  if (INTERNAL_NAMES.test(name) || tags?.includes(HIDDEN_TAG) === true) return true;
  const { langgraph_node: node, ls_integration: integration } = extra?.metadata ?? {};
  // The step of `createReactAgent` that inserts the system prompt.
  if (name === 'prompt') return typeof node === 'string' && node !== name;
  return integration === AGENT && node === name && AGENT_NODES.includes(name);
}
