import type { Figures } from '../../domain/query/query.ts';
import { parsedQuery } from '../../filter/run-filter.ts';
import { STORE_METHODS, type Store, type StoreStatus } from '../../store/store.ts';

/** Upper bounds of the histogram's buckets, in seconds. */
const BOUNDS_S: readonly number[] = [0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3, 10];

const REASONS: Readonly<Record<number, string>> = {
  400: 'malformed',
  401: 'unauthorized',
  403: 'forbidden',
  404: 'not_found',
  413: 'too_large',
  415: 'unsupported',
  422: 'invalid',
  429: 'busy',
  503: 'unavailable',
};

/** Maximum number of projects of a tenant, those with the most runs. */
const PROJECTS_MAX = 200;
/** Minimum time between two reads of the projects, in milliseconds. A store in ClickHouse reads all runs for them. */
const PROJECTS_MS = 30_000;

class Histogram {
  readonly counts: number[] = BOUNDS_S.map(() => 0);
  count = 0;
  sumS = 0;

  add(seconds: number): void {
    for (const [at, bound] of BOUNDS_S.entries()) if (seconds <= bound) this.counts[at] = (this.counts[at] ?? 0) + 1;
    this.count += 1;
    this.sumS += seconds;
  }
}

/** Counts runs, bytes, errors and calls to the store, and formats the counts for Prometheus. */
export class Metrics {
  acceptedRuns = 0;
  discardedRuns = 0;
  receivedBytes = 0;
  ignoredMetrics = 0;
  /** Number of OpenTelemetry spans that the receiver was not asked to store. */
  leftOutSpans = 0;
  readonly refused: Map<string, number> = new Map();
  readonly #histograms = new Map<string, Histogram>();
  #projects: Promise<string> | undefined;
  #projectsMs = 0;

  responded(status: number): void {
    if (status < 400) return;
    const reason = REASONS[status] ?? (status < 500 ? 'other' : 'error');
    this.refused.set(reason, (this.refused.get(reason) ?? 0) + 1);
  }

  measured(store: Store): Store {
    const methods = STORE_METHODS.map((name) => {
      const call = (...args: unknown[]): unknown => (store[name] as (...values: unknown[]) => unknown)(...args);
      const isPromise = name !== 'runs' && name !== 'subscribe';
      return [name, isPromise ? (...args: unknown[]) => this.#timed(name, call(...args)) : call];
    });
    return Object.fromEntries(methods);
  }

  /** Returns the metrics of the projects of these tenants, as of up to half a minute ago. */
  async projects(store: Store, tenants: readonly string[]): Promise<string> {
    const nowMs = performance.now();
    if (this.#projects === undefined || nowMs - this.#projectsMs > PROJECTS_MS) {
      this.#projectsMs = nowMs;
      this.#projects = projectsText(store, tenants).catch(() => '');
    }
    return this.#projects;
  }

  text(openStreams: number, status: StoreStatus | undefined, projects = ''): string {
    const refused = [...this.refused].map(([reason, count]): Sample => [`{reason="${reason}"}`, count]);
    return [
      family('accepted_runs_total', 'counter', 'Posts and patches of runs that were stored', [['', this.acceptedRuns]]),
      family('discarded_runs_total', 'counter', 'Posts and patches of deleted runs', [['', this.discardedRuns]]),
      family('refused_requests_total', 'counter', 'Requests with an error response', refused),
      family('received_bytes_total', 'counter', 'Size of request bodies, decompressed', [['', this.receivedBytes]]),
      family('ignored_metrics_requests_total', 'counter', 'Requests with metrics, which are not stored', [
        ['', this.ignoredMetrics],
      ]),
      family('left_out_spans_total', 'counter', 'Spans that are not related to model calls', [['', this.leftOutSpans]]),
      family('open_streams', 'gauge', 'Open change streams', [['', openStreams]]),
      family('store_seconds', 'histogram', 'Duration of calls to the store', this.#buckets()),
      ...(status === undefined ? [] : statusText(status)),
      projects,
    ].join('');
  }

  async #timed(name: string, result: unknown): Promise<unknown> {
    const startMs = performance.now();
    try {
      return await result;
    } finally {
      const histogram = this.#histograms.get(name) ?? new Histogram();
      this.#histograms.set(name, histogram);
      histogram.add((performance.now() - startMs) / 1_000);
    }
  }

  #buckets(): Sample[] {
    return [...this.#histograms].flatMap(([name, { counts, count, sumS }]): Sample[] => [
      ...BOUNDS_S.map((bound, at): Sample => [`_bucket{method="${name}",le="${bound}"}`, counts[at] ?? 0]),
      [`_bucket{method="${name}",le="+Inf"}`, count],
      [`_sum{method="${name}"}`, sumS],
      [`_count{method="${name}"}`, count],
    ]);
  }
}

/** Gauges, because deletions and the retention time make them smaller. */
async function projectsText(store: Store, tenants: readonly string[]): Promise<string> {
  const query = parsedQuery({ groupBy: 'project' as const, groups: PROJECTS_MAX, buckets: 1 });
  const found = await Promise.all(tenants.map(async (tenant) => (await store.statistics({ tenant }, query)).groups));
  const labels = (at: number, project: string): string =>
    `{tenant="${escaped(tenants[at] ?? '')}",project="${escaped(project)}"}`;
  const gauge = (name: string, help: string, read: (figures: Figures) => number | undefined): string => {
    const samples = found.flatMap((own, at) => own.map((one): Sample => [labels(at, one.group), read(one) ?? 0]));
    return family(`project_${name}`, 'gauge', help, samples);
  };
  return [
    gauge('cost', 'Cost of the stored runs, as far as it is known', ({ usage }) => usage?.total_cost),
    gauge('unpriced_calls', 'Stored calls whose cost is unknown', ({ unpriced_calls }) => unpriced_calls),
    gauge('model_calls', 'Stored model calls', ({ model_calls }) => model_calls.runs),
    gauge('errors', 'Stored runs with an error', ({ errors }) => errors),
  ].join('');
}

function escaped(value: string): string {
  return value.replaceAll(/[\\"]/g, '\\$&').replaceAll('\n', '\\n');
}

function statusText({ queuedBytes, unindexedRuns, fileBytes, walBytes, freeBytes, isDamaged }: StoreStatus): string[] {
  return [
    family('write_queue_bytes', 'gauge', 'Size of runs that wait to be written', [['', queuedBytes]]),
    family('unindexed_runs', 'gauge', 'Runs that are not in the search index yet', [['', unindexedRuns]]),
    family('store_bytes', 'gauge', 'Size of the files of the store', [
      ['{file="main"}', fileBytes],
      ['{file="wal"}', walBytes],
    ]),
    family('disk_free_bytes', 'gauge', 'Free space on the disk of the store', [['', freeBytes]]),
    ...(isDamaged === undefined
      ? []
      : [family('store_damaged', 'gauge', 'Whether the file of the store is damaged', [['', +isDamaged]])]),
  ];
}

/** The end of a sample's name with its labels, and its value. */
type Sample = readonly [labels: string, value: number];

function family(name: string, type: string, help: string, samples: readonly Sample[]): string {
  const lines = samples.map(([labels, value]) => `runspan_${name}${labels} ${value}\n`);
  return `# HELP runspan_${name} ${help}\n# TYPE runspan_${name} ${type}\n${lines.join('')}`;
}
