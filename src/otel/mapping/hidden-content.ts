import { diagnostics } from '../../base/diagnostics.ts';
import { cut } from '../../base/text.ts';
import { matcherOf } from '../../config/checker.ts';
import type { Fields } from '../../payload/fields.ts';
import { setTimer } from '../../platform/timers.ts';
import type { CapturePolicy } from '../../run/sink.ts';
import type { Attributes } from '../conventions/values.ts';
import { watchForEnd } from '../live/flushing.ts';
import { carries, MESSAGE_FIELDS } from './message-events.ts';
import type { RowIndex } from './row-index.ts';

/**
 * Names of attributes that never contain what a model or a tool was asked or answered, beside those that the tables read. A
 * name that ends with `*` stands for all that begin with the rest.
 */
export const NO_CONTENT: readonly string[] = `
  adk.workflow.name agent.name agent_name ai.response.timestamp ai.toolCall.name aws.request_id client.address cloud.*
  code.file.path code.filepath code.function code.function.name code.namespace container.id container.image.*
  container.name db.instance.id db.name db.namespace db.query.summary db.system db.system.name db.user deployment.*
  env environment error.code error.message error.name error.stack error.type event.name exception.escaped
  exception.message exception.stacktrace exception.type faas.coldstart faas.cron faas.instance faas.invocation_id
  faas.invoked_name faas.invoked_provider faas.invoked_region faas.max_memory faas.name faas.time faas.trigger
  faas.version feature_flag.key gcp.vertex.agent.event_id gcp.vertex.agent.invocation_id gen_ai.agent.description
  gen_ai.agent.id gen_ai.agent.name gen_ai.agent.version gen_ai.data_source.id gen_ai.evaluation.name
  gen_ai.evaluation.score.label gen_ai.event.end_time gen_ai.event.start_time gen_ai.guardrail.name
  gen_ai.main_agent.id gen_ai.main_agent.name gen_ai.memory.record.id gen_ai.memory.store.id
  gen_ai.openai.response.system_fingerprint gen_ai.pipeline.name gen_ai.skill.id gen_ai.skill.name gen_ai.token.type
  gen_ai.tool.description gen_ai.tool.name gen_ai.tool.type gen_ai.workflow.name graph.node.* host.* http.client_ip
  http.error_message http.error_name http.flavor http.host http.scheme http.server_name http.status_text
  http.user_agent jsonrpc.protocol.version jsonrpc.request.id k8s.* langfuse.environment
  langfuse.experiment.dataset.id langfuse.experiment.id langfuse.experiment.item.id langfuse.experiment.name
  langfuse.observation.level langfuse.observation.prompt.name langfuse.observation.prompt.version
  langfuse.observation.status_message langfuse.observation.type langfuse.release langfuse.trace.name langfuse.version
  langsmith.span.dotted_order langsmith.span.id langsmith.span.kind langsmith.span.parent_id langsmith.trace.id
  langsmith.trace.name langsmith.trace.session_id langsmith.trace.session_name level ls_invocation_params.modalities
  ls_invocation_params.reasoning ls_invocation_params.service_tier ls_invocation_params.stop_sequences
  mastra.span.type mcp.method.name mcp.protocol.version mcp.session.id messaging.client.id
  messaging.consumer.group.name messaging.destination.partition.id messaging.message.conversation_id
  messaging.message.id messaging.system messaging.system.name net.host.ip net.host.name net.host.port net.peer.ip
  net.peer.name net.peer.port net.protocol.name net.protocol.version net.sock.family net.sock.host.addr
  net.sock.host.port net.sock.peer.addr net.sock.peer.name net.sock.peer.port net.transport network.connection.subtype
  network.connection.type network.interface.name network.local.address network.local.port network.peer.address
  network.peer.port network.protocol.name network.protocol.version network.transport network.type openai.api.type
  openai.response.system_fingerprint openinference.span.kind operation.name os.* otel.component.name
  otel.component.type otel.library.name otel.library.version otel.scope.name otel.scope.version otel.status_code
  otel.status_description peer.service process.executable.name process.runtime.* prompt.id release resource.name
  rpc.response.status_code rpc.system rpc.system.name sentry.environment sentry.kind sentry.op sentry.origin
  sentry.release sentry.source server.address service.instance.id service.name service.namespace service.peer.name
  service.version session.previous_id span.type telemetry.* thread.id thread.name tool.description tool.name
  traceloop.entity.name traceloop.entity.path traceloop.entity.version traceloop.span.kind traceloop.workflow.name
  url.domain url.scheme url.template user_agent.* version`
  .trim()
  .split(/\s+/);

const hasNoContent = matcherOf(NO_CONTENT);

/** Attributes that contain parts of a request. Tables read them as metadata and parameters with the last word of the name. */
const PARTS_OF_REQUEST: readonly string[] = [
  ...['llm.prompt_template.template', 'gen_ai.request.extra_body', 'gen_ai.request.extra_query'],
];

/** The metadata key of the number of attributes that were left out. */
export const HIDDEN_ATTRIBUTES = 'hidden_attributes';

type Policy = Pick<CapturePolicy, 'hideInputs' | 'hideOutputs' | 'isKept'>;

/** Returns undefined if nothing is hidden, so that the attributes of a span need not be checked. */
export function hiddenContent(policy: Policy, index: RowIndex): HiddenContent | undefined {
  return policy.hideInputs || policy.hideOutputs ? new HiddenContent(policy, index) : undefined;
}

/** Decides which attributes of a span are recorded although its inputs or outputs are hidden. */
export class HiddenContent {
  /** Number of attributes that were left out because they may contain content under a name that nobody knows. */
  count = 0;
  readonly #policy: Policy;
  readonly #index: RowIndex;

  constructor(policy: Policy, index: RowIndex) {
    this.#policy = policy;
    this.#index = index;
  }

  /** Returns whether an attribute is left out. */
  readonly hides = (name: string, value: unknown): boolean => {
    if (isPayload(name, this.#policy, this.#index) || name === HIDDEN_ATTRIBUTES) return true;
    if (typeof value === 'number' || typeof value === 'boolean' || typeof value === 'bigint') return false;
    const isNamed = this.#index.isNamed(name) || isPayload(name, BOTH, this.#index);
    if (isNamed || hasNoContent(name) || this.#policy.isKept?.(name)) return false;
    this.count++;
    note(name);
    return true;
  };

  /** Returns the attributes that are recorded. The fields of a message in an event belong to the side of the event. */
  shown(attributes: Attributes | undefined, event = ''): Attributes {
    if (isPayload(event, this.#policy, this.#index)) return {};
    const isMessage = isPayload(event, BOTH, this.#index);
    const isField = (name: string): boolean => isMessage && (MESSAGE_FIELDS.has(name) || name.startsWith(`${event}.`));
    return fieldsWhere(attributes, (name, value) => isField(name) || !this.hides(name, value));
  }

  /** Returns the parameters of a call that are recorded. One attribute may contain a whole request, with instructions. */
  shownParameters(parameters: Fields): Fields {
    const prefix = 'ls_invocation_params.';
    const isShown = (key: string, value: unknown) => this.#index.isParameter(key) || !this.hides(prefix + key, value);
    return fieldsWhere(this.withoutParts(parameters), isShown);
  }

  /** Returns metadata or parameters that tables define without parts of a hidden request. */
  withoutParts(fields: Fields): Fields {
    const isPart = (key: string): boolean => PARTS_OF_REQUEST.some((name) => name.endsWith(`.${key}`));
    return this.#policy.hideInputs ? fieldsWhere(fields, (key) => !isPart(key)) : fields;
  }

  /** Adds the number to metadata of JSON texts. */
  addCount(metadata: Map<string, string>): void {
    const before = Number(metadata.get(HIDDEN_ATTRIBUTES)) || 0;
    if (this.count > 0) metadata.set(HIDDEN_ATTRIBUTES, String(before + this.count));
  }
}

const BOTH: Policy = { hideInputs: true, hideOutputs: true };

function isPayload(name: string, { hideInputs, hideOutputs }: Policy, index: RowIndex): boolean {
  const isOf = (payload: 'inputs' | 'outputs'): boolean => index.isPayload(name, payload) || carries(name, payload);
  const isPart = hideInputs && PARTS_OF_REQUEST.includes(name);
  return isPart || (hideInputs && isOf('inputs')) || (hideOutputs && isOf('outputs'));
}

function fieldsWhere(fields: Attributes = {}, isShown: (name: string, value: unknown) => boolean): Fields {
  return Object.fromEntries(Object.entries(fields).filter(([name, value]) => isShown(name, value)));
}

/** Maximum number of names in the log line, and of characters in a name. */
const NAMES_MAX = 50;
const NAME_CHARACTERS_MAX = 100;

/** Most libraries have set all of their attributes by then. */
const REPORT_AFTER_MS = 10_000;

const names = new Set<string>();

function note(name: string): void {
  if (names.size === 0) {
    setTimer(reportHiddenNames, REPORT_AFTER_MS).unref();
    watchForEnd(reportHiddenNames);
  }
  const shown = cut(name, NAME_CHARACTERS_MAX);
  if (!names.has(shown)) names.add(names.size < NAMES_MAX ? shown : 'and others');
}

/** Logs the names of the attributes that were left out so far, once per program. */
export function reportHiddenNames(): void {
  if (names.size === 0) return;
  diagnostics.warnOnce(
    'hidden attributes',
    `attributes that may contain hidden content are left out: ${[...names].join(', ')}; name those without content in \`keepAttributes\`.`,
  );
  names.clear();
}
