// Rejects every promise that the exporter awaits, one at a time, in programs that reach each of them.
import { afterAll, beforeAll, expect, it } from 'vitest';
import { addsUp } from '../support/adds-up.ts';
import { sample } from '../support/campaign.ts';
import type * as delivering from '../support/delivering.ts';
import type * as runs from '../support/encoded-run.ts';
import { temporaryFolder } from '../support/folders.ts';
import { type Answer, ingestServer, type Received, type Reply } from '../support/ingest-server.ts';
import { quickTime } from '../support/virtual-time.ts';
import { openSeams, type Seams } from './seams.ts';

interface Program {
  readonly name: string;
  readonly reply: (request: Received, index: number) => Reply;
  readonly info?: Answer;
  readonly limits?: Parameters<typeof delivering.exporterTo>[1];
  readonly durability?: 'write-ahead' | 'spill';
  /** Whether each batch is large enough to be compressed. */
  readonly isCompressed?: boolean;
}

const isMultipart = ({ path }: Received): boolean => path.endsWith('/multipart');

const gzipInfo: Answer = { status: 200, body: '{"instance_flags":{"gzip_body_enabled":true}}' };

const programs: readonly Program[] = [
  { name: 'a service that is well', reply: () => ({ status: 202 }), info: gzipInfo, isCompressed: true },
  {
    name: 'a service that is busy, rejects the key and refuses gzip',
    reply: (_, index) => [{ status: 503 }, { status: 403 }, { status: 415 }][index] ?? { status: 202 },
    info: gzipInfo,
    isCompressed: true,
    limits: { batchRuns: 2 },
  },
  {
    name: 'a service that takes single runs only',
    reply: (request, index) =>
      isMultipart(request)
        ? { status: 404 }
        : index === 2
          ? { status: 429, headers: { 'retry-after': '1' } }
          : { status: 202 },
  },
  {
    name: 'a service that refuses batches and one run',
    reply: (_, index) => [{ status: 413 }, { status: 400 }, { status: 409 }][index] ?? { status: 202 },
  },
  {
    name: 'a service that fails for a batch',
    reply: (_, index) => ({ status: index < 6 ? 500 : 202 }),
    limits: { batchRuns: 3 },
  },
  { name: 'a disk', reply: (_, index) => ({ status: index === 0 ? 503 : 202 }), durability: 'write-ahead' },
];

let seams: Seams;
let exporterTo: typeof delivering.exporterTo;
let recordSingles: typeof delivering.recordSingles;
let run: typeof runs;

/** Runs a program and checks the guarantees that hold whichever promise is rejected. */
async function runProgram({ reply, info, limits, durability, isCompressed = false }: Program): Promise<void> {
  const unhandled: unknown[] = [];
  const note = (reason: unknown): void => void unhandled.push(reason);
  process.on('unhandledRejection', note);
  const folder = temporaryFolder();
  try {
    await using server = await ingestServer(reply, info);
    const disk = durability === undefined ? {} : { durability, spoolDir: folder.path };
    const changes = { compress: isCompressed };
    const exporter = exporterTo(server.url, { lingerMs: 1, ...limits }, disk, quickTime(), changes);
    const inputs = JSON.stringify({ q: 'x'.repeat(isCompressed ? 300_000 : 1) });
    recordSingles(exporter, 5, inputs);
    const attached = run.makeRun({
      inputs,
      attachments: [{ name: 'a', mimeType: 'text/plain', bytes: new Blob(['a']) }],
    });
    exporter.start(attached);
    exporter.end(run.ended(attached));
    await expect(exporter.flush({ timeoutMs: 5_000 })).resolves.toBeDefined();
    const later = recordSingles(exporter, 2, inputs);
    await expect(exporter.flush({ timeoutMs: 5_000 })).resolves.toBeDefined();
    await expect(exporter.flush({ timeoutMs: 5_000 })).resolves.toEqual({ ok: true, pending: 0 });
    const bodies = server.received.map(({ body }) => body.toString('latin1'));
    if (!isCompressed) for (const id of later) expect(bodies.some((body) => body.includes(id))).toBe(true);
    expect(addsUp(exporter.stats()), JSON.stringify(exporter.stats())).toBe(true);
    expect(exporter.stats().sent).toBeGreaterThanOrEqual(2);
    await expect(exporter.finish({ timeoutMs: 5_000 })).resolves.toBeDefined();
    await expect(exporter.close({ timeoutMs: 5_000 })).resolves.toBeDefined();
    expect(addsUp(exporter.stats())).toBe(true);
    await new Promise((resolve) => setImmediate(resolve));
    expect(unhandled).toEqual([]);
  } finally {
    process.off('unhandledRejection', note);
    folder.remove();
  }
}

beforeAll(async () => {
  seams = await openSeams();
  ({ exporterTo, recordSingles } = await seams.load<typeof delivering>('/test/support/delivering.ts'));
  run = await seams.load<typeof runs>('/test/support/encoded-run.ts');
});
afterAll(() => seams.close());

it.each(programs)(
  'with $name, a rejected promise never reaches the application, leaves a run uncounted, or stops delivery',
  async (program) => {
    seams.reached();
    await runProgram(program);
    const expressions = seams.reached();
    expect(expressions.length).toBeGreaterThan(10);
    const failed: string[] = [];
    for (const expression of sample(expressions.sort())) {
      seams.reject(expression);
      await runProgram(program).catch((error: Error) => failed.push(`${expression} → ${error.message}`));
      seams.reject('');
    }
    expect(failed).toEqual([]);
  },
);
