import { forgetOldest } from '../../base/forget-oldest.ts';
import { claudeCode } from '../../otel/conventions/claude-code.ts';
import { codex } from '../../otel/conventions/codex.ts';
import { indexWith } from '../../otel/mapping/row-index.ts';
import { isExported } from '../../otel/span-filter.ts';
import type { SpanContextLike, SpanLike } from '../../otel/span-like.ts';
import { spanKey } from '../domain/identity.ts';

/** Maximum number of spans that are remembered for later requests, of each kind. */
const KNOWN_MAX = 10_000;

/** Maximum number of spans between a span and the nearest one that is stored. Parents may also form a cycle. */
const LEVELS_MAX = 100;

/** Coding agents, whose spans need no attributes of a model call. */
const AGENTS = [claudeCode, codex];

/**
 * Selects the spans that are related to model calls and the spans above them, as a `RunSpanProcessor` does by default. A
 * span usually arrives after those below it. A span whose parent is left out gets the nearest one above that is not.
 */
export class SpanSelection {
  readonly #leftOut = new Map<string, SpanContextLike | undefined>();
  /** Parents of selected spans, which are selected when they arrive. */
  readonly #above = new Map<string, true>();

  /** Returns the spans to store. Their parents may differ from those of the given ones. */
  select(spans: readonly SpanLike[]): ReadonlyMap<SpanLike, SpanLike> {
    const byKey = new Map(spans.map((span) => [spanKey(span.spanContext()), span]));
    const selected = new Map<SpanLike, SpanLike>();
    for (const span of spans) {
      if (isSelected(span) || this.#above.has(spanKey(span.spanContext()))) this.#add(span, byKey, selected);
    }
    for (const span of spans) {
      if (!selected.has(span)) remember(this.#leftOut, spanKey(span.spanContext()), span.parentSpanContext);
    }
    return selected;
  }

  #add(span: SpanLike, byKey: ReadonlyMap<string, SpanLike>, selected: Map<SpanLike, SpanLike>): void {
    for (let at: SpanLike | undefined = span; at !== undefined && !selected.has(at); ) {
      const { parentSpanContext: given, ...others }: SpanLike = at;
      const parent = this.#nearest(given);
      selected.set(at, parent === given ? at : { ...others, ...(parent && { parentSpanContext: parent }) });
      if (parent !== undefined) remember(this.#above, spanKey(parent), true);
      at = parent && byKey.get(spanKey(parent));
    }
  }

  #nearest(parent: SpanContextLike | undefined): SpanContextLike | undefined {
    let at = parent;
    for (let level = 0; level < LEVELS_MAX && at && this.#leftOut.has(spanKey(at)); level += 1)
      at = this.#leftOut.get(spanKey(at));
    return at;
  }
}

function isSelected(span: SpanLike): boolean {
  return isExported(span, 'llm', indexWith()) || AGENTS.some(({ matches }) => matches?.(span.attributes) === true);
}

function remember<Value>(known: Map<string, Value>, key: string, value: Value): void {
  known.set(key, value);
  forgetOldest(known, KNOWN_MAX);
}
