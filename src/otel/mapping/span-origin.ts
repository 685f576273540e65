import { safeText } from '../../base/text.ts';
import type { Fields } from '../../payload/fields.ts';
import { serialize } from '../../payload/serialize.ts';
import type { PayloadRules } from '../../payload/truncate.ts';
import { number } from '../conventions/values.ts';
import type { LinkLike, ScopeLike, SpanContextLike, SpanLike } from '../span-like.ts';
import type { HiddenContent } from './hidden-content.ts';
import type { MappedFields } from './mapped-fields.ts';
import { runNameOf, scopeOf } from './span-identity.ts';

const KINDS: readonly string[] = ['INTERNAL', 'SERVER', 'CLIENT', 'PRODUCER', 'CONSUMER'];

/**
 * Returns the OpenTelemetry ids of an open span as JSON text for `extra.metadata.otel`. The parent id is included even
 * if the parent is unknown, so that the parts of a distributed trace can be joined.
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

/** Returns `extra.metadata.otel` for an ended span as JSON text, with all span data that no run field contains. */
export function originJson(
  span: SpanLike,
  parent: SpanContextLike | undefined,
  { name, protocol, hidden }: Pick<MappedFields, 'name' | 'protocol' | 'hidden'>,
  rules: PayloadRules,
): string {
  let json = `${idsJson(span.spanContext(), parent)},"kind":"${KINDS[span.kind] ?? 'INTERNAL'}"`;
  if (protocol !== undefined) json += `,"protocol":"${protocol}"`;
  if (runNameOf(span.name) !== name) json += `,"name":${serialize(span.name, rules, ['metadata', 'otel', 'name'])}`;
  if (span.status.code === 1) json += ',"status":"OK"';
  const scope = scopeOf(span);
  if (scope !== undefined) json += `,"scope":${scopeJson(scope)}`;
  json += droppedJson('attributes', span.droppedAttributesCount);
  json += droppedJson('events', span.droppedEventsCount);
  json += droppedJson('links', span.droppedLinksCount);
  if (span.links.length > 0)
    json += `,"links":${serialize(
      span.links.map((link) => linkOf(link, hidden)),
      rules,
      ['metadata', 'otel', 'links'],
    )}`;
  return `${json}}`;
}

function droppedJson(what: string, count: unknown): string {
  if (count === 0) return '';
  const dropped = number(count) ?? 0;
  return dropped === 0 ? '' : `,"dropped_${what}_count":${dropped}`;
}

/** Converts a span link. The context may be missing, because applications may link to an empty context. */
function linkOf(link: Partial<LinkLike> | undefined, hidden: HiddenContent | undefined): Fields {
  const attributes = hidden === undefined ? link?.attributes : hidden.shown(link?.attributes);
  return { trace_id: link?.context?.traceId, span_id: link?.context?.spanId, attributes };
}

const scopes = new WeakMap<ScopeLike, string>();

/** Returns a scope as JSON text. The text is cached, because all spans of an instrumentation share one scope object. */
function scopeJson(scope: ScopeLike): string {
  let json = scopes.get(scope);
  if (json === undefined) {
    json = JSON.stringify({ name: asText(scope.name), version: asText(scope.version) });
    scopes.set(scope, json);
  }
  return json;
}

/** Converts a value to text, because applications may set values that JSON does not support. */
function asText(value: unknown): unknown {
  return value === undefined ? undefined : safeText(value);
}
