import {
  type Attributes,
  counts,
  defined,
  type Fields,
  isObject,
  json,
  jsonObject,
  same,
  text,
  texts,
} from './values.ts';
import { type Vocabulary, WHOLE } from './vocabulary.ts';

const KIND = 'langsmith.span.kind';
const METADATA = 'langsmith.metadata';

/**
 * LangSmith's own attributes, as its SDK sets them on spans and its guide for OpenTelemetry names them:
 * https://docs.langchain.com/langsmith/trace-with-opentelemetry
 *
 * What its SDK calls `gen_ai.prompt` and `gen_ai.completion` is read by the GenAI table.
 *
 * `langsmith.span.id`, `.parent_id`, `.dotted_order` and `langsmith.trace.id` are metadata and no more. The ids of a run
 * follow from its span, so that the processor, the exporter and other processes agree on them, and the runs below have been
 * placed by them when such an attribute comes: a run that took other ids would leave its own tree.
 */
export const langSmith: Vocabulary = {
  name: 'langsmith',
  roots: ['langsmith', 'gen_ai'],
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
  spent: [
    KIND,
    METADATA,
    // Headers may hold keys.
    'langsmith.request.headers',
    // These tell LangSmith's exporter what to send, and nothing of the run.
    'langsmith.traceable',
    'langsmith.is_root',
    'langsmith.traceable_parent_otel_span_id',
  ],
};

/** Keys by which LangSmith groups the traces of a conversation. */
const THREADS: readonly string[] = ['thread_id', 'session_id', 'conversation_id'];

/** One attribute for each, of which those that are no text come as JSON, and one for all, which is less exact. */
function ownMetadata(value: unknown, attributes: Attributes): Fields {
  const given = attributes[METADATA];
  const all = jsonObject(given) ?? defined({ metadata: given });
  const each = isObject(value) ? value : {};
  return withThread({
    ...all,
    ...Object.fromEntries(Object.entries(each).map(([key, item]) => [key, ownValue(item)])),
  });
}

function withThread(metadata: Attributes): Fields {
  const key = THREADS.find((name) => text(metadata[name]) !== undefined);
  return key === undefined ? { ...metadata } : { thread_id: metadata[key], ...metadata };
}

/** A text between quotation marks is one of the application. */
function ownValue(value: unknown): unknown {
  const parsed = json(value);
  return typeof parsed === 'object' ? parsed : value;
}

/** Text of none says that there are none. */
function tagsOf(value: unknown): string[] | undefined {
  return typeof value === 'string' ? (texts(value.split(',').map((tag) => tag.trim())) ?? []) : texts(value);
}
