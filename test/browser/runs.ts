import type { RunFields, RunOperation } from '#src/receiver.ts';

/** Returns the id of a run by its number. Ids sort by number. */
export function idOf(index: number): string {
  return `01900000-0000-7000-8000-${index.toString(16).padStart(12, '0')}`;
}

export interface RunIdea extends RunFields {
  /** Number of the parent, which must exist. */
  readonly parent?: number;
  /** Start in milliseconds after `FIRST_MS`. @default the number of the run */
  readonly at?: number;
  /** Latency in milliseconds; absent while the run is open. */
  readonly ms?: number;
  readonly attachments?: RunOperation['attachments'];
}

const FIRST_MS = Date.parse('2026-11-20T07:00:00.000Z');
const orders = new Map<string, string>();

export function run(
  index: number,
  { parent, at = index, ms, attachments = [], ...fields }: RunIdea = {},
): RunOperation {
  const id = idOf(index);
  const startMs = FIRST_MS + at;
  const stamp = `${new Date(startMs).toISOString().replace(/[-:.]/g, '').replace('Z', '000Z')}${id}`;
  const order = parent === undefined ? stamp : `${orders.get(idOf(parent))}.${stamp}`;
  orders.set(id, order);
  return {
    kind: 'post',
    id,
    attachments,
    fields: {
      name: `run ${index}`,
      run_type: 'chain',
      start_time: microseconds(startMs),
      inputs: {},
      session_name: 'shop',
      dotted_order: order,
      trace_id: order.split('.')[0]?.slice(-36) ?? id,
      ...(parent === undefined ? {} : { parent_run_id: idOf(parent) }),
      ...(ms === undefined ? {} : { end_time: microseconds(startMs + ms) }),
      ...fields,
    },
  };
}

/** Returns a run that starts a second after the run with the number before, and takes 12 ms. */
export function runAtSecond(index: number, fields: RunIdea = {}): RunOperation {
  return run(index, { at: 1_000 * index, ms: 12, ...fields });
}

function microseconds(ms: number): string {
  return new Date(ms).toISOString().replace('Z', '000Z');
}
