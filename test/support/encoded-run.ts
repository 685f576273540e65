import { randomUUID } from 'node:crypto';
import type { Delivery, Item } from '../../src/export/delivery.ts';
import { itemOf, newDelivery } from '../../src/export/delivery.ts';
import type { Ticket } from '../../src/export/replay.ts';
import { dottedOrder } from '../../src/run/dotted-order.ts';
import { type EncodedRun, newRecord } from '../../src/run/encoded-run.ts';
import { isoTimestamp } from '../../src/run/timestamp.ts';

const START_US = Date.UTC(2026, 0, 2, 3, 4, 5) * 1_000;
let made = 0;

/** A root run, or the child of `parent`; each starts a microsecond after the one before. */
export function makeRun(fields: Partial<EncodedRun> = {}, parent?: EncodedRun): EncodedRun {
  const id = fields.id ?? randomUUID();
  const startUs = START_US + ++made;
  const record = newRecord({
    id,
    traceId: parent?.traceId ?? id,
    dottedOrder: dottedOrder(parent?.dottedOrder, startUs, id),
    parentRunId: parent?.id,
    startTime: isoTimestamp(startUs),
    project: 'default',
    refused: false,
    name: `run ${made}`,
    runType: 'chain',
    tags: undefined,
    metadata: undefined,
  });
  return { ...record, runtime: undefined, ...fields };
}

/** Fills in the fields of the end. */
export function ended(run: EncodedRun, fields: Partial<EncodedRun> = {}): EncodedRun {
  return Object.assign(run, { endTime: '2026-01-02T03:04:06.000000Z', ...fields });
}

/** A delivery that waits in the queue at the given stage. */
export function makeDelivery(
  run: EncodedRun = ended(makeRun()),
  stage: 'started' | 'whole' | 'patch' = 'whole',
  ticket?: Ticket,
): Delivery {
  const delivery = newDelivery(run, 0, 0, ticket);
  delivery.stage = stage;
  delivery.isPosted = stage === 'patch';
  delivery.bytes = 1_024;
  return delivery;
}

/** The record of an ended run that is on its way. */
export function makeItem(run?: EncodedRun, stage?: 'started' | 'whole' | 'patch', ticket?: Ticket): Item {
  return itemOf(makeDelivery(run, stage, ticket));
}
