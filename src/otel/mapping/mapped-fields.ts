import { ATTACHMENTS_MAX, sizeOf } from '../../payload/attachment.ts';
import { type Fields, parseExact } from '../../payload/fields.ts';
import { type EncodedPayload, encodePayload, serialize } from '../../payload/serialize.ts';
import { completeUsage, metadataOfUsage } from '../../payload/usage.ts';
import { responseIdIn, USAGE } from '../../run/calls/same-call.ts';
import type { UsageMetadata } from '../../run/record.ts';
import type { CapturePolicy } from '../../run/sink.ts';
import { isoTimestamp } from '../../run/time.ts';
import { http, withoutCredentials } from '../conventions/protocols.ts';
import { type Attributes, text } from '../conventions/values.ts';
import { type Rename, SERVICE_TIER } from '../conventions/vocabulary.ts';
import type { SpanLike } from '../span-like.ts';
import type { AttributeReader, Found, FoundPayload, Groups } from './attributes.ts';
import type { HiddenContent } from './hidden-content.ts';
import { hrTimeUs, runNameOf } from './span-identity.ts';

/** The sink settings that affect the fields of a span. */
export type SpanCapture = Pick<CapturePolicy, 'hideInputs' | 'hideOutputs' | 'isKept' | 'payload' | 'attachmentBytes'>;

export class StartFields {
  name: string;
  runType = 'chain';
  inputs: EncodedPayload | undefined = undefined;
  /** The protocol of a request, whose payloads say nothing of what the application was asked, for example `http`. */
  protocol: string | undefined = undefined;

  constructor(span: SpanLike) {
    this.name = runNameOf(span.name);
  }
}

/** Run fields of an ended span that are the same in all forms of its run. */
export class MappedFields extends StartFields {
  outputs: EncodedPayload | undefined = undefined;
  hasUsage = false;
  /** The requested model, and the id of the response or of the tool's call, as the span has them. */
  model: string | undefined = undefined;
  responseId: string | undefined = undefined;
  readonly endTime: string;
  /** Undefined if neither inputs nor outputs are hidden. */
  readonly hidden: HiddenContent | undefined;

  constructor(span: SpanLike, startUs: number, hidden: HiddenContent | undefined) {
    super(span);
    this.hidden = hidden;
    this.endTime = isoTimestamp(Math.max(startUs, hrTimeUs(span.endTime) ?? startUs));
  }
}

/**
 * Sets the fields that the mapping tables define for an ended span. Returns the groups. Their metadata contains the
 * parameters and the usage too.
 */
export function mapEnd(
  fields: MappedFields,
  reader: AttributeReader,
  kind: number,
  capture: SpanCapture,
  hasUsageBelow: boolean | undefined,
): Groups & { readonly metadata: Found } {
  const isAlone = hasUsageBelow !== true && isAgentAlone(kind, reader.attributes);
  const groups = mapStart(fields, reader, capture, isAlone);
  const { outputs, parameters, usage: counts, metadata: found = { fields: {} } } = groups;
  const metadata = fields.hidden?.withoutParts(found.fields) ?? found.fields;
  fields.model = text(metadata.ls_model_name);
  fields.responseId = responseIdIn(fields.runType, metadata);
  if (parameters !== undefined)
    addParameters(metadata, fields.hidden?.shownParameters(parameters.fields) ?? parameters.fields);
  if (counts !== undefined) {
    const usage = completeUsage(counts.fields, metadata[SERVICE_TIER]);
    fields.hasUsage = true;
    if (metadata[USAGE] === undefined) Object.assign(metadata, metadataOfUsage(usage));
    if (!capture.hideOutputs)
      fields.outputs = encoded('outputs', withUsage(outputs, usage, capture), capture, fields.inputs);
  } else if (outputs !== undefined) {
    fields.outputs = encoded('outputs', outputs, capture, fields.inputs);
  }
  groups.metadata = metadata === found.fields ? found : { fields: metadata };
  return groups as Groups & { readonly metadata: Found };
}

/** Maximum number of metadata keys per span. Further attributes are dropped and counted. */
const METADATA_KEYS_MAX = 1_000;

/** Calls `add` for the metadata of the tables and for unused attributes. Returns the number of dropped ones. */
export function forMetadata(
  mapped: Fields,
  reader: AttributeReader,
  hidden: HiddenContent | undefined,
  add: (key: string, value: unknown) => void,
): number {
  let keys = 0;
  for (const key of Object.keys(mapped)) {
    if (mapped[key] === undefined) continue;
    keys++;
    add(key, mapped[key]);
  }
  let dropped = 0;
  reader.forRest((name, value, isCleaned) => {
    if (mapped[name] !== undefined && Object.hasOwn(mapped, name)) return;
    if (hidden?.hides(name, value) === true) return;
    if (keys++ < METADATA_KEYS_MAX) add(name, (isCleaned ? withoutCredentials(value) : undefined) ?? value);
    else dropped++;
  });
  return dropped;
}

/** Sets the fields that the mapping tables define for an open span. Returns the groups of fields that the tables set. */
export function mapStart(
  fields: StartFields,
  reader: AttributeReader,
  capture: SpanCapture,
  isAgentAlone: boolean,
): Groups {
  const { attributes } = reader;
  let runType: string | undefined;
  let rename: Rename | undefined;
  let nameFrom: string | undefined;
  for (const vocabulary of reader.vocabularies) {
    const kind = vocabulary.kindOf(attributes);
    runType ??= kind.runType;
    if (!capture.hideInputs) rename ??= kind.rename;
    if (nameFrom === undefined && kind.nameFrom !== undefined && text(attributes[kind.nameFrom]) !== undefined) {
      nameFrom = kind.nameFrom;
    }
  }
  fields.runType = runType ?? 'chain';
  const [first] = reader.vocabularies;
  if (first && fields.runType === 'chain' && reader.vocabularies.every(({ isProtocol }) => isProtocol))
    fields.protocol = first.name;
  const isNoRequest = NOT_REQUESTS.has(fields.runType);
  // A span that encloses model calls usually repeats the sum of their token counts.
  const isUsageRepeated = fields.runType === 'chain' && !isAgentAlone;
  const groups = reader.read((group, vocabulary) => {
    if (group === 'inputs') return capture.hideInputs || (isNoRequest && vocabulary === http);
    if (group === 'outputs') return capture.hideOutputs || (isNoRequest && vocabulary === http);
    return group === 'usage' && isUsageRepeated;
  });
  if (groups.inputs !== undefined) fields.inputs = encoded('inputs', groups.inputs, capture, undefined);
  if (nameFrom !== undefined) {
    fields.name = attributes[nameFrom] as string;
    reader.use(nameFrom);
  } else if (rename !== undefined && fields.name === rename.from) {
    fields.name = rename.to;
  }
  return groups;
}

/** The value of `SpanKind.CLIENT`, which marks a request to another service. */
const CLIENT = 2;

/**
 * Returns whether a span describes an agent whose model calls have no spans. Agents in other services and agents
 * reported by OpenInference are assumed to have none.
 */
function isAgentAlone(kind: number, attributes: Attributes): boolean {
  if (attributes['gen_ai.operation.name'] === 'invoke_agent' && kind === CLIENT) return true;
  return text(attributes['openinference.span.kind'])?.toUpperCase() === 'AGENT';
}

/** Runs of these types never take their payloads from HTTP attributes. */
const NOT_REQUESTS: ReadonlySet<string> = new Set(['llm', 'embedding', 'tool']);

function encoded(
  field: 'inputs' | 'outputs',
  payload: FoundPayload,
  capture: SpanCapture,
  inputs: EncodedPayload | undefined,
): EncodedPayload {
  if (payload.text !== undefined) return { json: payload.text, attachments: undefined };
  return encodePayload(field, payload.fields, capture, inputs?.attachments && roomBeside(inputs.attachments, capture));
}

/** Returns how many attachments and bytes are left for the outputs, after the attachments in the inputs. */
function roomBeside(attachments: NonNullable<EncodedPayload['attachments']>, { attachmentBytes }: SpanCapture) {
  const bytes = attachments.reduce((sum, attachment) => sum + sizeOf(attachment.bytes), 0);
  return {
    bytesLeft: attachmentBytes - bytes,
    countLeft: ATTACHMENTS_MAX - attachments.length,
    isTaken: (name: string) => attachments.some((attachment) => attachment.name === name),
  };
}

/** Adds token counts to the outputs. Extends their JSON text if possible, because encoding them again is slower. */
function withUsage(outputs: FoundPayload | undefined, usage: UsageMetadata, { payload }: SpanCapture): FoundPayload {
  if (outputs?.text === undefined) return { fields: { ...outputs?.fields, [USAGE]: usage } };
  const body = outputs.text.trimEnd().slice(0, -1);
  if (body.trimEnd() === '{' || body.includes(USAGE))
    return { fields: { ...parseExact<Fields>(outputs.text), [USAGE]: usage } };
  return { text: `${body},"${USAGE}":${serialize(usage, payload, ['outputs', USAGE])}}` };
}

function addParameters(metadata: Fields, parameters: Fields): void {
  const { temperature, max_tokens, max_completion_tokens, stop } = parameters;
  metadata.ls_invocation_params ??= parameters;
  metadata.ls_temperature ??= temperature;
  metadata.ls_max_tokens ??= max_tokens ?? max_completion_tokens;
  metadata.ls_stop ??= stop;
}
