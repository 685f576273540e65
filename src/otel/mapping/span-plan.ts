import { metadataJson, shownName } from '../../payload/serialize.ts';
import type { PayloadRules } from '../../payload/truncate.ts';
import { USAGE } from '../../run/calls/same-call.ts';
import { jsonName } from '../../run/encoded-run.ts';
import { areRunsMeasured } from '../../run/run-meters.ts';
import { isCancelledCall } from '../conventions/ai-sdk.ts';
import type { Attributes } from '../conventions/values.ts';
import type { SpanLike } from '../span-like.ts';
import { AttributeReader } from './attributes.ts';
import { HIDDEN_ATTRIBUTES, hiddenContent } from './hidden-content.ts';
import { forMetadata, MappedFields, mapEnd, type SpanCapture } from './mapped-fields.ts';
import { spanError } from './span-error.ts';
import { originJson } from './span-origin.ts';
import type { SpanMapping, SpanSurroundings } from './span-to-run.ts';

/** The fields of the run of an ended span, with its metadata as JSON text. The run has no error, events, tags or attachments. */
export class PlannedFields extends MappedFields {
  /** Pairs of key and value, each with a comma after it. Without `otel`. */
  metadata = '';
  /** JSON text of the metadata's `otel`. */
  origin = '';
  hasUsageMetadata = false;
  /** The values of the span in `metadata` as JSON text, by key. Undefined if no meter counts runs. */
  readonly measured: Map<string, string> | undefined = areRunsMeasured() ? new Map() : undefined;
}

/**
 * Maps ended spans like `spanToRun`, with less work for spans whose attributes have the same names in the same order as
 * those of earlier spans. The reader of the earlier span is then used again, so the names need not be looked up.
 */
export class SpanPlans {
  readonly #mapping: SpanMapping;
  readonly #pairs = new PairTexts();
  #root = new Node('');
  #size = 0;
  #entries: MetadataEntries = [];
  #entryKeys: ReadonlySet<string> = new Set();
  #entriesJson = '';
  #isReading = false;

  constructor(mapping: SpanMapping) {
    this.#mapping = mapping;
  }

  /**
   * Returns the fields of a span, or undefined if only `spanToRun` can map it: if its names are new or its run has rare fields.
   * The name is masked.
   */
  fieldsOf(span: SpanLike, capture: SpanCapture, around: Surroundings): PlannedFields | undefined {
    // A getter in an attribute's value may end another span.
    if (this.#isReading) return undefined;
    this.#isReading = true;
    let reader: AttributeReader | undefined;
    try {
      if (isRare(span, capture)) return undefined;
      const node = this.#nodeOf(span.attributes);
      reader = node && this.#readerOf(node, span.attributes, capture.payload);
      return reader === undefined || node?.isRare === true ? undefined : this.#read(reader, span, capture, around);
    } catch {
      // `spanToRun` reports the failure, and maps the other parts of the span.
      return undefined;
    } finally {
      reader?.release();
      this.#isReading = false;
    }
  }

  #read(
    reader: AttributeReader,
    span: SpanLike,
    capture: SpanCapture,
    { startUs, parentIds, hasUsageBelow }: Surroundings,
  ): PlannedFields | undefined {
    const { index, resources } = this.#mapping;
    const rules = capture.payload;
    const fields = new PlannedFields(span, startUs, hiddenContent(capture, index));
    this.#setEntries(resources.of(span.resource, rules, fields.hidden));
    const { metadata } = mapEnd(fields, reader, span.kind, capture, hasUsageBelow);
    if (fields.inputs?.attachments !== undefined || fields.outputs?.attachments !== undefined) return undefined;
    const keys = this.#entryKeys;
    let isTwice = keys.has(ORIGIN);
    let json = '';
    const dropped = forMetadata(metadata.fields, reader, fields.hidden, (key, value) => {
      isTwice ||= key === ORIGIN || keys.has(key);
      fields.hasUsageMetadata ||= key === USAGE;
      const pair = this.#pairs.textOf(key, value, rules);
      json += pair;
      fields.measured?.set(key, pair.slice(jsonName(key).length + 1, -1));
    });
    if (isTwice || dropped > 0) return undefined;
    fields.origin = originJson(span, parentIds, fields, rules);
    fields.metadata = json + this.#entriesJson;
    if (fields.hidden?.count) fields.metadata += `"${HIDDEN_ATTRIBUTES}":${fields.hidden.count},`;
    fields.name = shownName(fields.name, rules);
    return fields;
  }

  #setEntries(entries: MetadataEntries): void {
    if (entries === this.#entries) return;
    this.#entries = entries;
    this.#entryKeys = new Set([...entries.map(([key]) => key), HIDDEN_ATTRIBUTES]);
    this.#entriesJson = entries.map(([key, json]) => `${jsonName(key)}:${json},`).join('');
  }

  /** Returns the last node of the names. Undefined if a value is undefined, because the tables do not read such attributes. */
  #nodeOf(attributes: Attributes): Node | undefined {
    const names = Object.keys(attributes);
    if (names.length > NAMES_MAX) return undefined;
    let node = this.#root;
    for (let at = 0; at < names.length; at++) {
      const name = names[at] as string;
      if (attributes[name] === undefined) return undefined;
      const { next } = node;
      node = next !== undefined && next.name === name ? next : this.#after(node, name);
    }
    return node;
  }

  /** Returns the reader of a node. The first span with new names gets none, because names that contain data rarely recur. */
  #readerOf(node: Node, attributes: Attributes, rules: PayloadRules): AttributeReader | undefined {
    const { reader } = node;
    if (reader?.reuse(attributes, rules) === true) return reader;
    if (node.isKnown) {
      if (reader === undefined) this.#grow(Object.keys(attributes).length);
      node.reader = new AttributeReader(attributes, this.#mapping.index, rules);
      node.isRare = node.reader.hasRows('tags') || node.reader.hasRows('times');
    }
    node.isKnown = true;
    return node.reader;
  }

  #after(node: Node, name: string): Node {
    let next = node.others?.get(name);
    if (next === undefined) {
      if (name.length > NAME_CHARACTERS_MAX) return new Node(name);
      this.#grow(1);
      next = new Node(name);
      node.others ??= new Map();
      node.others.set(name, next);
    }
    node.next = next;
    return next;
  }

  #grow(names: number): void {
    this.#size += names;
    if (this.#size <= SIZE_MAX) return;
    this.#size = 0;
    this.#root = new Node('');
  }
}

type Surroundings = Pick<SpanSurroundings, 'startUs' | 'parentIds' | 'hasUsageBelow'>;

type MetadataEntries = ReturnType<SpanMapping['resources']['of']>;

/** The metadata key of the data of the span. */
const ORIGIN = 'otel';

/** Maximum number of attributes of a span, and of characters in a name, for which a reader is kept. */
const NAMES_MAX = 128;
const NAME_CHARACTERS_MAX = 128;

/** Maximum number of nodes and of names in kept readers. When it is reached, all of them are forgotten. */
const SIZE_MAX = 4_000;

/** Spans whose attributes have the same names in the same order follow the same nodes. The last node has the reader. */
class Node {
  readonly name: string;
  /** The node that followed this node for the most recent span. */
  next: Node | undefined = undefined;
  others: Map<string, Node> | undefined = undefined;
  /** Whether it was the last node of an earlier span. */
  isKnown = false;
  reader: AttributeReader | undefined = undefined;
  /** Whether the attributes may set tags or events. */
  isRare = false;

  constructor(name: string) {
    this.name = name;
  }
}

/** Whether the run of a span has an error or events, or metadata that is not from its attributes or its resource. */
function isRare(span: SpanLike, { payload: { redaction } }: SpanCapture): boolean {
  return (
    span.events.length > 0 ||
    (redaction !== undefined && redaction.plain === undefined) ||
    span.resource.asyncAttributesPending === true ||
    spanError(span) !== undefined ||
    isCancelledCall(span)
  );
}

const PAIRS_MAX = 1_000;
const PAIR_CHARACTERS_MAX = 64;

/** Writes metadata as JSON text. Keeps the text of the latest short string of each key, because most spans repeat it. */
class PairTexts {
  readonly #known = new Map<string, { readonly json: string; readonly pair: string }>();
  #rules: PayloadRules | undefined;

  textOf(key: string, value: unknown, rules: PayloadRules): string {
    const isShort =
      typeof value === 'string' && value.length <= PAIR_CHARACTERS_MAX && key.length <= PAIR_CHARACTERS_MAX;
    if (rules !== this.#rules || this.#known.size >= PAIRS_MAX) this.#known.clear();
    this.#rules = rules;
    const known = isShort ? this.#known.get(key) : undefined;
    if (known !== undefined && isQuoted(known.json, value as string)) return known.pair;
    const json = metadataJson(key, value, rules);
    const pair = `${jsonName(key)}:${json},`;
    if (isShort && isQuoted(json, value)) this.#known.set(key, { json, pair });
    return pair;
  }
}

/** Whether JSON text is the string in quotes. The string itself is not kept, because it may be part of a long text. */
function isQuoted(json: string, text: string): boolean {
  return json.length === text.length + 2 && json.startsWith(text, 1);
}
