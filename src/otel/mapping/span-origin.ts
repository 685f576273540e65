import { safeText } from '../../base/text.ts';
import type { Fields } from '../../payload/fields.ts';
import type { PayloadRules } from '../../payload/limits.ts';
import { metadataJson, serialize } from '../../payload/serialize.ts';
import { number } from '../conventions/values.ts';
import type { LinkLike, ResourceLike, ScopeLike, SpanContextLike, SpanLike } from '../span-like.ts';

const KINDS: readonly string[] = ['INTERNAL', 'SERVER', 'CLIENT', 'PRODUCER', 'CONSUMER'];

/** All other resource attributes are the same for all runs in a service. */
const RESOURCE_KEYS: readonly string[] = ['service.name', 'service.version', 'deployment.environment.name'];

/**
 * Returns an open span's ids in OpenTelemetry as JSON text for `extra.metadata.otel`. Includes the parent's id even if
 * the parent is unknown here, so that the two parts of a distributed trace can be joined.
 */
export function openOriginJson(ids: SpanContextLike, parent: SpanContextLike | undefined): string {
  return `${idsJson(ids, parent)}}`;
}

function idsJson(ids: SpanContextLike, parent: SpanContextLike | undefined): string {
  let json = `{"trace_id":${JSON.stringify(ids.traceId)},"span_id":${JSON.stringify(ids.spanId)}`;
  if (parent?.spanId !== undefined) json += `,"parent_span_id":${JSON.stringify(parent.spanId)}`;
  if (parent?.isRemote === true) json += ',"parent_is_remote":true';
  return json;
}

/** Returns the JSON text for an ended span's `extra.metadata.otel`, with all data that no run field contains. */
export function originJson(
  span: SpanLike,
  parent: SpanContextLike | undefined,
  runName: string,
  rules: PayloadRules,
): string {
  let json = `${idsJson(span.spanContext(), parent)},"kind":"${KINDS[span.kind] ?? 'INTERNAL'}"`;
  if (span.name !== runName) json += `,"name":${serialize(span.name, rules, ['metadata', 'otel', 'name'])}`;
  if (span.status.code === 1) json += ',"status":"OK"';
  const scope = span.instrumentationScope ?? span.instrumentationLibrary;
  if (scope !== undefined) json += `,"scope":${scopeJson(scope)}`;
  json += droppedJson('attributes', span.droppedAttributesCount);
  json += droppedJson('events', span.droppedEventsCount);
  json += droppedJson('links', span.droppedLinksCount);
  if (span.links.length > 0)
    json += `,"links":${serialize(span.links.map(linkOf), rules, ['metadata', 'otel', 'links'])}`;
  return `${json}}`;
}

function droppedJson(what: string, count: unknown): string {
  if (count === 0) return '';
  const dropped = number(count) ?? 0;
  return dropped === 0 ? '' : `,"dropped_${what}_count":${dropped}`;
}

/** An application may link to an empty context. */
function linkOf(link: Partial<LinkLike> | undefined): Fields {
  return { trace_id: link?.context?.traceId, span_id: link?.context?.spanId, attributes: link?.attributes };
}

const scopes = new WeakMap<ScopeLike, string>();

/** All spans of an instrumentation share one scope object. */
function scopeJson(scope: ScopeLike): string {
  let json = scopes.get(scope);
  if (json === undefined) {
    json = JSON.stringify({ name: asText(scope.name), version: asText(scope.version) });
    scopes.set(scope, json);
  }
  return json;
}

/** Applications may set values that JSON does not support. */
function asText(value: unknown): unknown {
  return value === undefined ? undefined : safeText(value);
}

type MetadataEntries = readonly (readonly [key: string, json: string])[];

/** Each resource's metadata and the rules it was created with, because two exporters may mask different values. */
const resources = new WeakMap<ResourceLike, { rules: PayloadRules; entries: MetadataEntries }>();

/** Returns a resource's metadata as JSON text. The list is empty while some of its attributes are pending. */
export function resourceMetadata(resource: ResourceLike, rules: PayloadRules): MetadataEntries {
  const known = resources.get(resource);
  if (known?.rules === rules) return known.entries;
  if (resource.asyncAttributesPending === true) return [];
  const { attributes } = resource;
  const entries = RESOURCE_KEYS.filter((key) => attributes[key] !== undefined).map(
    (key) => [key, metadataJson(key, attributes[key], rules)] as const,
  );
  resources.set(resource, { rules, entries });
  return entries;
}
