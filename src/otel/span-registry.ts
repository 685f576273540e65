import type { RunContext } from '../run/context.ts';

/**
 * Spans found by their ids alone: what is put in the active context may be a wrapper around the span that was started
 * (OpenInference does so). The least recently used are forgotten; a parent that is found as an object is not concerned.
 */
const IDS_MAX = 10_000;

/** What we use of a span to find it again. */
export interface SpanKey {
  spanContext(): { readonly traceId: string; readonly spanId: string };
}

/** What is known of a span: the context for runs that start below it. A `SpanRun` where the span is a run itself. */
export interface SpanEntry {
  readonly context: RunContext;
}

/** The spans that one processor has seen start. Holds on to none of them. */
export class SpanRegistry {
  readonly #bySpan = new WeakMap<object, SpanEntry>();
  readonly #byIds = new Map<string, SpanEntry>();

  add(span: SpanKey, entry: SpanEntry): void {
    this.#bySpan.set(span, entry);
    this.#byIds.set(idsOf(span), entry);
    if (this.#byIds.size <= IDS_MAX) return;
    for (const oldest of this.#byIds.keys()) {
      this.#byIds.delete(oldest);
      return;
    }
  }

  /** What was added for this very object. */
  get(span: object): SpanEntry | undefined {
    return this.#bySpan.get(span);
  }

  /** The same, or what was added for a span of the same ids. */
  find(span: SpanKey): SpanEntry | undefined {
    const entry = this.#bySpan.get(span);
    if (entry !== undefined) return entry;
    const ids = idsOf(span);
    const known = this.#byIds.get(ids);
    if (known === undefined) return undefined;
    this.#byIds.delete(ids);
    this.#byIds.set(ids, known);
    return known;
  }

  /** The latest entries, oldest first. */
  entries(): Iterable<SpanEntry> {
    return this.#byIds.values();
  }
}

function idsOf(span: SpanKey): string {
  const { traceId, spanId } = span.spanContext();
  return `${traceId}:${spanId}`;
}
