import { setImmediate as nextTurn } from 'node:timers/promises';
import { type ConfigureOptions, createExporter, type Stats, traceable } from 'runspan';
import { createPlatform } from 'runspan/testing';
import type { DemoContext } from './context.ts';
import { BATCH, MULTIPART, SIMPLE_END, SIMPLE_RUN } from './interface.ts';

/** Sends the valid requests from which the mistakes differ, and then a trace with an exporter. */
export async function ingestion(context: DemoContext): Promise<void> {
  const { platform, check } = context;
  const send = async (request: string, body: string, type = 'application/json'): Promise<void> => {
    const [method = '', path] = request.split(' ');
    const headers = { 'x-api-key': platform.apiKey, 'content-type': type };
    const { status } = await fetch(platform.url + path, { method, headers, body });
    check(`the status of ${request}`, status, 202);
  };
  await send('POST /runs', JSON.stringify(SIMPLE_RUN));
  await send(`PATCH /runs/${SIMPLE_RUN.id}`, JSON.stringify(SIMPLE_END));
  await send('POST /runs/multipart', BATCH, MULTIPART);
  const [root, child] = await platform.runs({ project: 'wire' });
  check(
    'both formats describe the same run',
    [root?.inputs, root?.outputs],
    [{ question: 'Tea?' }, { answer: 'Tea.' }],
  );
  check('the child is below it', child?.parent_run_id, SIMPLE_RUN.id);
  const { requests } = await deliver(context, 'batches');
  check('an exporter sends batches', [requests.multipart > 0, requests.simple], [true, 0]);
}

/** Records a trace of three runs with an exporter of its own, and checks that each run arrives once. */
export async function deliver(
  { platform, service, check }: DemoContext,
  project: string,
  options?: ConfigureOptions,
): Promise<Stats> {
  const exporter = createExporter({ ...service, ...options, project });
  const leaf = traceable((n: number) => n, { name: 'leaf' });
  traceable(() => leaf(1) + leaf(2), { name: project, exporter })();
  await exporter.flush({ timeoutMs: 20_000 });
  const stats = exporter.stats();
  await exporter.close();
  const { created, sent, dropped } = stats;
  const received = await platform.runs({ project });
  check(`created = sent + dropped = received (${project})`, [created, sent + dropped, received.length], [3, 3, 3]);
  return stats;
}

/** The ledger of an exporter that sends tiny runs as fast as it can. */
export interface Throughput extends Pick<Stats, 'created' | 'sent' | 'dropped'> {
  readonly received: number;
  readonly runsPerSecond: number;
}

const RUNS_PER_TURN = 50;
/** The platform keeps this many runs in memory. */
const RUNS_MAX = 100_000;

/** Sends tiny runs to a platform of its own for some time, and counts them on both sides. */
export async function throughput(service: DemoContext['service'], durationMs: number): Promise<Throughput> {
  const platform = await createPlatform({ keys: { [service.apiKey]: ['shop'] } });
  const exporter = createExporter({ ...service, endpoint: platform.url, project: 'load' });
  const tiny = traceable((n: number) => n, { name: 'tiny', exporter });
  const startedMs = performance.now();
  for (let n = 0; n < RUNS_MAX && performance.now() - startedMs < durationMs; await nextTurn()) {
    await exporter.ready();
    for (const end = n + RUNS_PER_TURN; n < end; n += 1) tiny(n);
  }
  await exporter.flush();
  const seconds = (performance.now() - startedMs) / 1_000;
  const { created, sent, dropped } = exporter.stats();
  const { length: received } = await platform.runs({ project: 'load' });
  await exporter.close();
  await platform.close();
  return { created, sent, dropped, received, runsPerSecond: Math.round(received / seconds) };
}
