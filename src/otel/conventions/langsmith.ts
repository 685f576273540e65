import { defined, type Fields, fieldsOf } from '../../payload/fields.ts';
import { type Attributes, counts, json, jsonFields, same, text, texts, withThreadAndUser } from './values.ts';
import { type Vocabulary, WHOLE } from './vocabulary.ts';

const KIND = 'langsmith.span.kind';
const METADATA = 'langsmith.metadata';

/**
 * Mapping table for LangSmith's attributes, from its SDK and its OpenTelemetry guide:
 * https://docs.langchain.com/langsmith/trace-with-opentelemetry
 *
 * `gen_ai.prompt` and `gen_ai.completion` are in the GenAI table.
 *
 * `langsmith.span.id`, `.parent_id`, `.dotted_order` and `langsmith.trace.id` become metadata. The run id is derived
 * from the span instead, so that all processes use the same id. When LangSmith sets its ids, nested runs may already
 * refer to the derived id.
 */
export const langSmith: Vocabulary = {
  name: 'langsmith',
  namespaces: ['langsmith', 'gen_ai'],
  kindOf: (attributes) => ({ runType: text(attributes[KIND])?.toLowerCase(), nameFrom: 'langsmith.trace.name' }),
  usage: [
    ['langsmith.usage_metadata', WHOLE, counts, 'merged'],
    ['gen_ai.usage.input_token_details', 'input_token_details', counts],
    ['gen_ai.usage.output_token_details', 'output_token_details', counts],
  ],
  parameters: [
    ['langsmith.request.streaming', 'stream', same],
    ['gen_ai.request.extra_query', 'extra_query', json],
    ['gen_ai.request.extra_body', 'extra_body', json],
  ],
  metadata: [[METADATA, WHOLE, ownMetadata, 'below']],
  tags: [['langsmith.span.tags', 'tags', tagsOf]],
  project: 'langsmith.trace.session_name',
  ignored: [
    KIND,
    METADATA,
    // Headers may contain API keys.
    'langsmith.request.headers',
    // LangSmith's OpenTelemetry exporter uses the following attributes internally.
    'langsmith.traceable',
    'langsmith.is_root',
    'langsmith.traceable_parent_otel_span_id',
  ],
};

/**
 * Returns the metadata. LangSmith's SDK sets one attribute per key, with plain or JSON text. The SDK also sets one
 * attribute with all keys, which is less exact and has lower precedence.
 */
function ownMetadata(value: unknown, attributes: Attributes): Fields {
  const given = attributes[METADATA];
  const all = jsonFields(given) ?? defined({ metadata: given });
  return withThreadAndUser({
    ...all,
    ...Object.fromEntries(Object.entries(fieldsOf(value)).map(([key, item]) => [key, ownValue(item)])),
  });
}

/** Parses a metadata value. JSON strings are not parsed, because the quotes are part of the application's value. */
function ownValue(value: unknown): unknown {
  const parsed = json(value);
  return typeof parsed === 'object' ? parsed : value;
}

/** Returns the tags. An empty string means no tags. */
function tagsOf(value: unknown): string[] | undefined {
  return typeof value === 'string' ? (texts(value.split(',').map((tag) => tag.trim())) ?? []) : texts(value);
}
