import { randomUUID } from 'node:crypto';
import { EncodedRun } from '#src/run/encoded-run.ts';

const START_US = Date.UTC(2026, 0, 2, 3, 4, 5) * 1_000;
let made = 0;

/** Creates a root run, or a child of `parent`. Each run starts a microsecond after the previous one. */
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

export function ended(run: EncodedRun, fields: Partial<EncodedRun> = {}): EncodedRun {
  return Object.assign(run, { endTime: '2026-01-02T03:04:06.000000Z', ...fields });
}
