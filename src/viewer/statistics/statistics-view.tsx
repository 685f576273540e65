import type { JSX } from 'preact';
import { useMemo } from 'preact/hooks';
import type { Figures, Statistics } from '../../receiver/domain/query.ts';
import { api } from '../data/api.ts';
import { queryOf } from '../data/filter.ts';
import { useLive } from '../data/live-value.ts';
import { address, go } from '../data/navigation.ts';
import { rangeIn, type StartRange, withRange } from '../data/time-range.ts';
import { Pending, Problem } from '../elements/controls.tsx';
import { cachedShare, cost, count, duration, exact, millisecondsAt, percent, plural } from '../elements/figures.ts';
import { visible } from '../elements/visible-text.ts';
import { feedbackChips } from '../list/columns.tsx';
import { EmptyState } from '../list/empty-state.tsx';
import { Chart, type ChartProps, type Series } from './chart.tsx';
import { Groups, groupingOf, KINDS, type Kind } from './groups.tsx';

const BUCKETS = 48;

/** Number of groups that the stacked chart shows separately. */
const SERIES = 5;

const TIME_ZONE = Intl.DateTimeFormat().resolvedOptions().timeZone;

/** View with totals, charts and groups for the runs that match the filter. */
export default function StatisticsView(): JSX.Element {
  const { filter, project, groupBy } = address.value;
  const readRange = (ranged: string, signal: AbortSignal): Promise<Statistics> => {
    const query = queryOf({ filter: ranged, project }, Date.now());
    const fields = { group_by: groupBy, buckets: BUCKETS, series: SERIES, rank_by: 'cost', time_zone: TIME_ZONE };
    for (const [name, value] of Object.entries(fields)) query.set(name, `${value}`);
    return api.statistics(query, signal);
  };
  const read = async (signal: AbortSignal) => {
    const all = await readRange(filter, signal);
    const range = fittedRange(all, filter);
    return { ...(range === undefined ? all : await readRange(withRange(filter, range), signal)), groupBy };
  };
  const { value, problem } = useLive(`${filter}\n${project}\n${groupBy}`, read, { isStale: () => true });
  if (value === undefined && problem === undefined) return <Pending note="Loading statistics…" />;
  if (value === undefined || value.total.runs === 0) return <EmptyState problem={problem} />;
  return (
    <section class="statistics scroll" aria-label="Statistics" tabIndex={-1} data-own-arrows>
      <Problem text={problem} />
      <Totals statistics={value} />
      <Charts statistics={value} groupName={groupingOf(value.groupBy).name} />
      <Groups statistics={value} groupBy={value.groupBy} />
    </section>
  );
}

/** Returns the index of the first bucket with runs, and the index after the last. */
function usedBuckets({ buckets }: Statistics): readonly [first: number, end: number] {
  const isUsed = ({ runs }: Bucket): boolean => runs > 0;
  return [Math.max(0, buckets.findIndex(isUsed)), buckets.findLastIndex(isUsed) + 1];
}

/** If most of the buckets are empty, returns the range of the others, in which the buckets are shorter. */
function fittedRange(statistics: Statistics, filter: string): StartRange | undefined {
  const { buckets } = statistics;
  const [first, end] = usedBuckets(statistics);
  if (end === 0 || (end - first) * 2 > buckets.length) return undefined;
  return { since: buckets[first]?.start_time, before: buckets[end]?.start_time ?? rangeIn(filter).before };
}

/** Returns the times at which the used buckets begin, and the time at which the last of them ends. */
function timesOf(statistics: Statistics): number[] {
  const [first, end] = usedBuckets(statistics);
  const { buckets, to = '' } = statistics;
  const times = [...buckets.map(({ start_time }) => start_time), to].map((time) =>
    Math.round(millisecondsAt(time) || 0),
  );
  return times.slice(first, end + 1);
}

function Totals({ statistics }: { statistics: Statistics }): JSX.Element {
  const [from, to] = [0, -1].map((at) => exact(timesOf(statistics).at(at) ?? 0).slice(0, -7));
  return (
    <>
      <header class="line">
        <h1>Statistics</h1>
        <span class="note">
          {from} to {to} · {TIME_ZONE}
        </span>
        {feedbackChips(statistics.total.feedback)}
      </header>
      <dl class="cards">
        {cardsOf(statistics.total).map(([name, value, note, color = '']) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd class={color}>
              {value} <span class="note">{note}</span>
            </dd>
          </div>
        ))}
      </dl>
    </>
  );
}

type Card = readonly [name: string, value: string, note?: string, color?: 'bad' | 'warn' | undefined];

/** Returns the totals that are known. */
function cardsOf(total: Figures): Card[] {
  const { runs, errors, pending, roots, model_calls: calls, usage = {} } = total;
  const { total_tokens, input_tokens = 0, output_tokens = 0, total_cost, cached_tokens, cache_savings: saved } = usage;
  const { name, read } = kindOf(total);
  const latency = read(total).latency_ms;
  const failed = (title: string, value: number, color: 'bad' | 'warn'): Card => [
    title,
    value.toLocaleString('en'),
    `${percent(value, roots.runs)} of traces`,
    value > 0 ? color : undefined,
  ];
  const known: readonly (Card | false | undefined)[] = [
    roots.runs > 0 && ['Traces', roots.runs.toLocaleString('en'), `${roots.incomplete} incomplete`],
    roots.runs > 0 && failed('Failed', roots.errors, 'bad'),
    roots.runs > 0 && failed('Failed below', roots.failed_below, 'warn'),
    latency && ['Latency p50', duration(latency.p50), `of ${name}`],
    latency && ['Latency p95', duration(latency.p95), `of ${name}`],
    roots.runs > 0 &&
      calls.latency_ms && ['Model call p50', duration(calls.latency_ms.p50), `p95 ${duration(calls.latency_ms.p95)}`],
    total_cost !== undefined && ['Cost', cost(total_cost), `of ${plural(calls.runs, 'model call')}`],
    total_cost !== undefined && roots.runs > 0 && ['Cost per trace', cost(total_cost / roots.runs), 'on average'],
    total_tokens !== undefined && [
      'Tokens',
      count(total_tokens),
      `${count(input_tokens)} in, ${count(output_tokens)} out`,
    ],
    cached_tokens !== undefined && ['Cached input', cachedShare(usage) ?? '', `${count(cached_tokens)} tokens`],
    saved !== undefined && [
      'Saved by caching',
      cost(saved),
      `${percent(saved, (total_cost ?? 0) + saved)} of the full price`,
    ],
    ['Runs', runs.toLocaleString('en'), `${errors} failed, ${pending} pending`],
  ];
  return known.filter((card): card is Card => Array.isArray(card));
}

/** The runs whose latency is shown: the traces, or else the model calls, or else all runs. */
function kindOf(total: Figures): Pick<Kind, 'name' | 'read'> {
  const kind = KINDS.find(({ read }) => read(total).runs > 0);
  return kind === undefined ? { name: 'runs', read: (figures) => figures } : { ...kind, name: kind.name.toLowerCase() };
}

type Bucket = Statistics['buckets'][number];

function Charts({ statistics, groupName }: { statistics: Statistics; groupName: string }): JSX.Element {
  const charts = useMemo(() => chartsOf(statistics, groupName), [statistics]);
  return (
    <div class="charts">
      {charts.map((props) => (
        <Chart key={JSON.stringify([props.title, props.series.map(({ name }) => name)])} {...props} />
      ))}
    </div>
  );
}

/** Returns the charts that have values. */
function chartsOf(statistics: Statistics, groupName: string): ChartProps[] {
  const { groups, total } = statistics;
  const [first, end] = usedBuckets(statistics);
  const buckets = statistics.buckets.slice(first, end);
  const times = timesOf(statistics);
  const toMs = times.pop() ?? 0;
  const [beforeMs = 0, lastMs = beforeMs] = times.slice(-2);
  // The last bucket ends with the range. Its bar is as wide as the others.
  const endMs = Math.max(toMs, 2 * lastMs - beforeMs, lastMs + 1);
  const shared = { times, endMs, zoom };
  const series = (name: string, color: Series['color'], read: (figures: Figures) => number | undefined): Series => ({
    ...{ name, color, total: read(total) },
    values: buckets.map(read),
  });
  const { name, read } = kindOf(total);
  const charts: ChartProps[] = [
    {
      ...shared,
      title: total.roots.runs > 0 ? 'Traces' : 'Runs',
      form: 'bars',
      print: (value) => Number(value.toFixed(1)).toLocaleString('en'),
      series:
        total.roots.runs > 0
          ? [
              series('error', 'bad', ({ roots }) => roots.errors),
              series('failed below', 'amber', ({ roots }) => roots.failed_below),
              series('others', 'bar', ({ roots }) => roots.runs - roots.errors - roots.failed_below),
            ]
          : [
              series('errors', 'bad', ({ errors }) => errors),
              series('others', 'bar', ({ runs, errors }) => runs - errors),
            ],
    },
    {
      ...shared,
      title: `Latency of ${name}`,
      form: 'lines',
      print: duration,
      series: [
        series('p50', 'accent', (figures) => read(figures).latency_ms?.p50),
        series('p95', 'bar', (figures) => read(figures).latency_ms?.p95),
      ],
    },
    {
      ...shared,
      title: 'Tokens',
      form: 'bars',
      print: count,
      series: [
        series('output', 'accent', ({ usage }) => usage?.output_tokens),
        series('input', 'bar', ({ usage }) => usage?.input_tokens && usage.input_tokens - (usage.cached_tokens ?? 0)),
        series('cached', 'accent-half', ({ usage }) => usage?.cached_tokens),
      ],
    },
    {
      ...shared,
      title: `Cost by ${groupName.toLowerCase()}`,
      form: 'bars',
      isRanked: true,
      print: cost,
      series: costSeries(
        total,
        buckets,
        groups.map((group) => ({ ...group, buckets: group.buckets?.slice(first, end) ?? [] })),
      ),
    },
  ];
  const hasValues = (one: Series): boolean => one.values.some((value) => value !== undefined);
  return charts
    .map((chart) => ({ ...chart, series: chart.series.filter(hasValues) }))
    .filter((chart) => chart.series.length > 0);
}

type SizedGroup = Pick<Figures, 'usage'> & {
  readonly group: string;
  readonly buckets: readonly Pick<Figures, 'usage'>[];
};

/** The costs of the most expensive groups, and of all other runs. */
function costSeries(total: Figures, buckets: readonly Bucket[], groups: readonly SizedGroup[]): Series[] {
  const shown = groups
    .map(({ group, usage, buckets: parts }) => ({
      name: visible(group),
      total: usage?.total_cost,
      values: costsOf(parts),
    }))
    .filter(({ values }) => values.some((value) => value !== undefined));
  const restOf = (all = 0, parts: readonly (number | undefined)[]): number | undefined => {
    const rest = parts.reduce<number>((sum, part) => sum - (part ?? 0), all);
    // Sums of floats are not exact.
    return rest > all / 1e9 ? rest : undefined;
  };
  const others: Series = {
    name: shown.length === 0 ? 'cost' : 'others',
    color: 'bar',
    total: restOf(
      total.usage?.total_cost,
      shown.map((one) => one.total),
    ),
    values: costsOf(buckets).map((all, at) =>
      restOf(
        all,
        shown.map(({ values }) => values[at]),
      ),
    ),
  };
  return [...shown.map((one, at): Series => ({ ...one, color: `series-${at}` as const })), others];
}

function costsOf(buckets: readonly Pick<Figures, 'usage'>[]): (number | undefined)[] {
  return buckets.map(({ usage }) => usage?.total_cost);
}

/** Sets the time range of the filter. If no range is given, removes the time range. */
function zoom(range?: { fromMs: number; toMs: number }): void {
  const at = (ms: number): string => new Date(ms).toISOString();
  const times = range && { since: at(range.fromMs), before: at(Math.max(range.toMs, range.fromMs + 1)) };
  go({ filter: withRange(address.value.filter, times ?? {}) });
}
