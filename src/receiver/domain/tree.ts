import { isObject } from '../../config/checker.ts';
import { dottedOrder } from '../../run/time.ts';
import type { RunFields } from './run-message.ts';

/**
 * Maximum number of levels in a derived `dotted_order`. A more deeply nested run becomes a sibling of its ancestor at
 * the maximum level.
 */
const LEVELS_MAX = 64;

/** The ids of an OpenTelemetry span, in lower case. */
export interface SpanIds {
  /** 32 hex digits. */
  readonly traceId: string;
  /** 16 hex digits. */
  readonly spanId: string;
}

/** Keys of a run's OpenTelemetry span and of the parent span. */
export interface SpanKeys {
  readonly span: string | undefined;
  /** Key of the parent span. Undefined if the run has a `parent_run_id` or a `dotted_order`, which take precedence. */
  readonly parentSpan: string | undefined;
}

const NO_SPAN: SpanKeys = { span: undefined, parentSpan: undefined };
const TRACE_ID = /^[0-9a-f]{32}$/i;
const SPAN_ID = /^[0-9a-f]{16}$/i;

/** Returns the key of a span: the second half of the trace id, followed by the span id, as 32 hex digits. */
export function spanKey({ traceId, spanId }: SpanIds): string {
  return (traceId.slice(16) + spanId).toLowerCase();
}

/** Returns the span keys from the ids in `extra.metadata.otel`. */
export function spanKeysOf({ extra, parent_run_id, dotted_order }: RunFields): SpanKeys {
  const otel = extra?.metadata?.otel;
  if (!isObject(otel)) return NO_SPAN;
  const { trace_id: traceId, span_id: spanId, parent_span_id: parentId } = otel;
  if (!matches(TRACE_ID, traceId) || !matches(SPAN_ID, spanId)) return NO_SPAN;
  const isPlaced = parent_run_id !== undefined || dotted_order !== undefined;
  const hasParent = !isPlaced && matches(SPAN_ID, parentId) && parentId !== spanId;
  return {
    span: spanKey({ traceId, spanId }),
    parentSpan: hasParent ? spanKey({ traceId, spanId: parentId }) : undefined,
  };
}

function matches(pattern: RegExp, value: unknown): value is string {
  return typeof value === 'string' && pattern.test(value);
}

/** A run as a node in the tree of a trace. */
export interface TreeNode {
  readonly id: string;
  readonly parentId: string | undefined;
  readonly startUs: number;
  /** The `dotted_order` in the run's messages, if any. */
  readonly order: string | undefined;
}

/**
 * Returns the `dotted_order` of each run in a trace. If a run's messages contain no `dotted_order`, derives one from
 * the parent's `dotted_order`. A run without a parent becomes a root.
 */
export function ordersOf(runs: readonly TreeNode[]): Map<string, string> {
  const nodes = new Map(runs.map((run) => [run.id, run]));
  const orders = new Map<string, string>();
  for (const run of runs) {
    const path = new Set<TreeNode>();
    let above: TreeNode | undefined = run;
    // If parents form a cycle, the first run that is reached twice becomes a root.
    while (above !== undefined && !orders.has(above.id) && !path.has(above)) {
      path.add(above);
      above = above.order === undefined ? nodes.get(above.parentId ?? '') : undefined;
    }
    for (const node of [...path].reverse()) {
      const parentOrder = node.order === undefined ? orders.get(node.parentId ?? '') : undefined;
      orders.set(node.id, node.order ?? derivedOrder(parentOrder, node));
    }
  }
  return orders;
}

export function derivedOrder(parentOrder: string | undefined, { id, startUs }: TreeNode): string {
  if (parentOrder === undefined || levelsOf(parentOrder) < LEVELS_MAX) return dottedOrder(parentOrder, startUs, id);
  return dottedOrder(parentOrder.slice(0, parentOrder.lastIndexOf('.')), startUs, id);
}

function levelsOf(order: string): number {
  let levels = 1;
  for (let at = order.indexOf('.'); at !== -1; at = order.indexOf('.', at + 1)) levels += 1;
  return levels;
}

/** Sorts runs by `dotted_order`, parents before children. */
export function inOrder<Run extends TreeNode>(runs: readonly Run[]): { run: Run; order: string }[] {
  const orders = ordersOf(runs);
  return runs
    .map((run) => ({ run, order: orders.get(run.id) ?? '' }))
    .sort((a, b) => (a.order < b.order ? -1 : a.order > b.order ? 1 : 0));
}
