import { isObject } from '../../base/options.ts';
import type { RunOperation } from '../store/store.ts';

/** Spans whose runs are known, and runs that wait for that of their parent; beyond so many the oldest are forgotten. */
const SPANS_MAX = 100_000;

/**
 * Finds the parents of runs that name them by OpenTelemetry's ids alone. The id of a run follows from its span, but from the
 * start of that as well, which its children do not know. They tend to come before it: a run whose parent has not come is kept
 * as the first of a trace, and a patch says where it belongs once the parent is here.
 *
 * What is told of spans stands in `extra.metadata.otel`, whichever way the run came.
 */
export class SpanRuns {
  readonly #spansMax: number;
  /** Ids of runs by those of their spans. */
  readonly #runs = new Map<string, string>();
  /** By the ids of the span that they wait for. */
  readonly #waiting = new Map<string, Set<string>>();
  #waitingRuns = 0;

  constructor(spansMax: number = SPANS_MAX) {
    this.#spansMax = spansMax;
  }

  /** The operations with all parents that are known now, and patches for runs that came before and have waited for these. */
  place(operations: readonly RunOperation[]): readonly RunOperation[] {
    const spans = operations.map(spanOf);
    const found: RunOperation[] = [];
    for (const [index, span] of spans.entries()) {
      if (span === undefined) continue;
      const id = operations[index]?.id ?? '';
      this.#learn(span.key, id);
      for (const child of this.#takeWaiting(span.key)) found.push(belonging(child, id));
    }
    if (spans.every((span) => span?.parentKey === undefined))
      return found.length === 0 ? operations : [...operations, ...found];
    const placed = operations.map((operation, index) => this.#placed(operation, spans[index]?.parentKey));
    return [...placed, ...found];
  }

  /** Lets runs wait again whose patches have not been kept. */
  putBack(operations: readonly RunOperation[], placed: readonly RunOperation[]): void {
    const keys = new Map(operations.map((operation) => [operation.id, spanOf(operation)?.key]));
    for (const { id, fields } of placed.slice(operations.length)) {
      const key = keys.get(fields.parent_run_id ?? '');
      if (key !== undefined) this.#wait(key, id);
    }
  }

  #placed(operation: RunOperation, parentKey: string | undefined): RunOperation {
    const { id, fields } = operation;
    if (parentKey === undefined || fields.dotted_order !== undefined || fields.parent_run_id !== undefined)
      return operation;
    const parentId = this.#runs.get(parentKey);
    if (parentId !== undefined) return { ...operation, fields: { ...fields, parent_run_id: parentId } };
    this.#wait(parentKey, id);
    return operation;
  }

  #learn(key: string, id: string): void {
    this.#runs.delete(key);
    this.#runs.set(key, id);
    for (const oldest of this.#runs.keys()) {
      if (this.#runs.size <= this.#spansMax) break;
      this.#runs.delete(oldest);
    }
  }

  #wait(key: string, id: string): void {
    const waiting = this.#waiting.get(key) ?? new Set();
    this.#waiting.set(key, waiting);
    if (waiting.has(id)) return;
    waiting.add(id);
    this.#waitingRuns += 1;
    for (const oldest of this.#waiting.keys()) {
      if (this.#waitingRuns <= this.#spansMax) break;
      this.#takeWaiting(oldest);
    }
  }

  #takeWaiting(key: string): Iterable<string> {
    const waiting = this.#waiting.get(key);
    if (waiting === undefined) return [];
    this.#waiting.delete(key);
    this.#waitingRuns -= waiting.size;
    return waiting;
  }
}

function belonging(id: string, parentId: string): RunOperation {
  return { kind: 'patch', id, fields: { parent_run_id: parentId }, attachments: [] };
}

/** Of the span that a run is, and of the one above it. */
function spanOf({ fields }: RunOperation): { key: string; parentKey: string | undefined } | undefined {
  const told = fields.extra?.metadata?.otel;
  if (!isObject(told)) return undefined;
  const { trace_id: traceId, span_id: spanId, parent_span_id: parentId } = told;
  if (typeof traceId !== 'string' || typeof spanId !== 'string') return undefined;
  if (traceId.length > 32 || spanId.length > 16) return undefined;
  // One that says it is below itself stands nowhere.
  const hasParent = typeof parentId === 'string' && parentId.length <= 16 && parentId !== spanId;
  return { key: `${traceId}:${spanId}`, parentKey: hasParent ? `${traceId}:${parentId}` : undefined };
}
