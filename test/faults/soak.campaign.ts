import { expect, it } from 'vitest';
import type { Stats } from '#src/index.ts';
import { addsUp } from '../support/adds-up.ts';
import { temporaryFolder } from '../support/folders.ts';
import { startNode } from '../support/program.ts';
import { randomFrom } from './random.ts';
import { neverReached, table } from './report.ts';
import { SoakServer } from './soak-server.ts';

/** Duration for each protocol. */
const SECONDS = Number(process.env.FAULT_SECONDS ?? 240);
/** Set it to make the service misbehave in the same order again. */
const SEED = Number(process.env.FAULT_SEED ?? Date.now() % 2 ** 31);
const RUNS_PER_SECOND = 1_000;
const OUTAGES = 8;

/** During this time, the engine compiles the used code, and all bounded structures fill up. */
const WARM_UP_MS = 60_000;
/** With fewer samples, a slope means little. */
const SAMPLES_MIN = 20;
const HEAP_SLOPE_MAX = 1024 * 1024;

/** Sockets for four requests and `GET /info`, a spool file, and two sockets that are being closed. */
const DESCRIPTORS_MAX = 8;

interface Sample {
  readonly kind: 'sample';
  readonly atMs: number;
  readonly heapBytes: number;
  readonly descriptors: number;
}

interface End {
  readonly kind: 'end';
  readonly flushed: unknown;
  readonly created: number;
  readonly checksum: number;
  readonly stats: Stats;
  readonly descriptors: number;
}

it.each(['runs', 'otlp-json'])(
  'with %s a service that misbehaves costs no memory and no descriptors, and everything arrives',
  { timeout: 2 * SECONDS * 1_000 + 240_000 },
  async (protocol) => {
    const server = new SoakServer(randomFrom(SEED), (SECONDS * 1_000) / OUTAGES);
    const { samples, end } = await soak(server, protocol);
    const arrived = server.ended();
    const { created, checksum, stats, flushed } = end;
    const later = samples.filter(({ atMs }) => atMs > WARM_UP_MS);
    const slope = slopePerMinute(later);
    report(server, samples, end, slope);

    expect(flushed).toEqual({ ok: true, pending: 0 });
    expect(arrived).toEqual({ runs: created, checksum });
    expect(server.early).toBe(0);
    expect(addsUp(stats)).toBe(true);
    expect(stats).toMatchObject({ created, sent: created, open: 0, queued: 0, inFlight: 0, spooled: 0, dropped: 0 });
    // In a shorter time, not everything can happen.
    if (SECONDS * 1_000 > WARM_UP_MS) expect(neverReached(server.reached)).toEqual([]);
    for (const { descriptors } of samples) expect(descriptors - end.descriptors).toBeLessThanOrEqual(DESCRIPTORS_MAX);
    if (samples[0] !== undefined) expect(end.descriptors).toBeLessThanOrEqual(samples[0].descriptors);
    if (later.length >= SAMPLES_MIN) expect(slope).toBeLessThan(HEAP_SLOPE_MAX);
  },
);

async function soak(server: SoakServer, protocol: string): Promise<{ samples: readonly Sample[]; end: End }> {
  const folder = temporaryFolder();
  const program = startNode(
    ['--expose-gc', 'test/faults/soak-program.mjs', String(SECONDS), String(RUNS_PER_SECOND)],
    { RUNSPAN_ENDPOINT: await server.listen(), RUNSPAN_PROTOCOL: protocol, SPOOL: folder.path },
    undefined,
    2 * SECONDS * 1_000 + 200_000,
  );
  try {
    await program.printed(/"recorded"/);
    server.calm();
    program.child.stdin?.write('end\n');
    const { code, stdout, stderr } = await program.ended;
    expect(code, stderr).toBe(0);
    const lines = stdout
      .trim()
      .split('\n')
      .map((line): { kind: string } => JSON.parse(line));
    return {
      samples: lines.filter(({ kind }) => kind === 'sample') as Sample[],
      end: lines.find(({ kind }) => kind === 'end') as End,
    };
  } finally {
    program.child.kill('SIGKILL');
    server.close();
    folder.remove();
  }
}

/** Returns the slope in bytes per minute, by least squares. */
function slopePerMinute(samples: readonly Sample[]): number {
  const mean = (values: readonly number[]): number => values.reduce((sum, value) => sum + value, 0) / values.length;
  const minutes = samples.map(({ atMs }) => atMs / 60_000);
  const bytes = samples.map(({ heapBytes }) => heapBytes);
  const [meanMinutes, meanBytes] = [mean(minutes), mean(bytes)];
  const shared = minutes.map((minute, index) => (minute - meanMinutes) * ((bytes[index] ?? 0) - meanBytes));
  return mean(shared) / mean(minutes.map((minute) => (minute - meanMinutes) ** 2));
}

function report(
  server: SoakServer,
  samples: readonly Sample[],
  { created, stats, descriptors }: End,
  slope: number,
): void {
  const mebibytes = (bytes: number): number => Math.round((bytes / 1024 / 1024) * 100) / 100;
  const heaps = samples.map(({ heapBytes }) => mebibytes(heapBytes));
  const open = samples.map((sample) => sample.descriptors);
  const arrived = server.ended().runs;
  console.log(
    [
      `Seed ${SEED}, ${SECONDS} s at ${RUNS_PER_SECOND} runs a second.`,
      table('What the service did, by requests:', server.reached),
      table('Runs:', [
        ['created', created],
        ['arrived', arrived],
        ['duplicates', server.duplicates],
        ['lost', created - arrived],
        ['reported as dropped', stats.dropped],
        ...Object.entries(stats.droppedByReason).map(([reason, runs]): [string, number] => [`  ${reason}`, runs]),
      ]),
      table('The process:', [
        ['samples', samples.length],
        ['heap in MiB, least', Math.min(...heaps)],
        ['heap in MiB, most', Math.max(...heaps)],
        ['heap in MiB a minute, after the first', mebibytes(slope)],
        ['descriptors, least', Math.min(...open)],
        ['descriptors, most', Math.max(...open)],
        ['descriptors, at the end', descriptors],
      ]),
    ].join('\n\n'),
  );
}
