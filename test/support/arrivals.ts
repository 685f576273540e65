import type { RunRecord } from '#src/run/record.ts';
import type { Received } from './ingest-server.ts';
import { readParts } from './multipart-reader.ts';
import { readSpans } from './span-reader.ts';

/** A record of a run in a request. */
export interface Arrival {
  readonly op: 'post' | 'patch' | 'span';
  readonly id: string;
  readonly name: string;
  readonly isEnded: boolean;
  /** Whether the exporter has ended the run. */
  readonly isIncomplete: boolean;
  /** All fields, payloads included. */
  readonly fields: Partial<RunRecord>;
  readonly attachments: ReadonlyMap<string, Buffer>;
}

/** Reads the runs of a multipart request, of a request with a single run, or of spans in JSON. */
export function arrivalsIn({ method, path, headers, body }: Received): Arrival[] {
  if (path.endsWith('/v1/traces')) {
    return readSpans(body).map(({ record, isIncomplete }) => ({ ...arrivalOf('span', record), isIncomplete }));
  }
  if (path.endsWith('/runs/multipart')) return partsOf({ headers, body });
  return [arrivalOf(method === 'POST' ? 'post' : 'patch', JSON.parse(body.toString()))];
}

function partsOf(request: Pick<Received, 'headers' | 'body'>): Arrival[] {
  const arrivals = new Map<string, { fields: Record<string, unknown>; attachments: Map<string, Buffer> }>();
  const attached: [id: string, name: string, bytes: Buffer][] = [];
  for (const { name, body } of readParts(request)) {
    const [, op = '', id = '', rest] = /^(\w+)\.([^.]+)(?:\.(.*))?$/s.exec(name) ?? [];
    if (op === 'attachment') attached.push([id, rest ?? '', body]);
    else if (rest === undefined)
      arrivals.set(`${op}.${id}`, { fields: JSON.parse(body.toString()), attachments: new Map() });
    else Object.assign(arrivals.get(`${op}.${id}`)?.fields ?? {}, { [rest]: JSON.parse(body.toString()) });
  }
  for (const [id, name, bytes] of attached)
    (arrivals.get(`post.${id}`) ?? arrivals.get(`patch.${id}`))?.attachments.set(name, bytes);
  return [...arrivals].map(([key, { fields, attachments }]) =>
    arrivalOf(key.startsWith('post') ? 'post' : 'patch', fields, attachments),
  );
}

function arrivalOf(
  op: Arrival['op'],
  fields: Partial<RunRecord>,
  attachments: Arrival['attachments'] = new Map(),
): Arrival {
  const { id = '', name = '', end_time, error } = fields;
  const isIncomplete = /^(Incomplete|Interrupted): /.test(error ?? '');
  return { op, id, name, isEnded: end_time !== undefined, isIncomplete, fields, attachments };
}
