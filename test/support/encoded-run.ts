import { randomUUID } from 'node:crypto';
import { CountedText, type Delivery, type Item, takeItem } from '../../src/export/delivery.ts';
import type { Ticket } from '../../src/export/replay.ts';
import { EncodedRun } from '../../src/run/encoded-run.ts';

const START_US = Date.UTC(2026, 0, 2, 3, 4, 5) * 1_000;
let made = 0;

/** A root run, or the child of `parent`; each starts a microsecond after the one before. */
export function makeRun(fields: Partial<EncodedRun> = {}, parent?: EncodedRun): EncodedRun {
  const id = fields.id ?? randomUUID();
  const startUs = START_US + ++made;
  const record = new EncodedRun({
    id,
    startUs,
    parent,
    project: 'default',
    name: `run ${made}`,
    runType: 'chain',
    tags: undefined,
    metadata: undefined,
  });
  return Object.assign(record, { runtime: undefined }, fields);
}

/** Fills in the fields of the end. */
export function ended(run: EncodedRun, fields: Partial<EncodedRun> = {}): EncodedRun {
  return Object.assign(run, { endTime: '2026-01-02T03:04:06.000000Z', ...fields });
}

/** A delivery that waits in the queue at the given stage. */
export function makeDelivery(fields: Partial<Delivery> = {}): Delivery {
  return {
    run: fields.stage === 'started' ? makeRun() : ended(makeRun()),
    attachedAtStart: fields.run?.attachments ?? [],
    startedAtMs: 0,
    recordedAtMs: 0,
    queuedAtMs: 0,
    stage: 'whole',
    isPosted: fields.stage === 'patch',
    incompleteAt: undefined,
    bytes: 1_024,
    inputs: new CountedText(),
    outputs: new CountedText(),
    postGroup: undefined,
    patchGroup: undefined,
    startSegment: undefined,
    endSegment: undefined,
    ticket: undefined,
    ...fields,
  };
}

/** The record of an ended run that is on its way. */
export function makeItem(
  run: EncodedRun = ended(makeRun()),
  stage: 'started' | 'whole' | 'patch' = 'whole',
  ticket?: Ticket,
): Item {
  return takeItem(makeDelivery({ run, stage, ticket }));
}
