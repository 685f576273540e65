import type { JSX } from 'preact';
import { useMemo } from 'preact/hooks';
import type { Figures, Statistics } from '../../receiver/domain/query.ts';
import { api } from '../data/api.ts';
import { queryOf } from '../data/filter.ts';
import { useLive } from '../data/live-value.ts';
import { address, go } from '../data/navigation.ts';
import { withRange } from '../data/time-range.ts';
import { type Fact, Facts, Pending, Problem } from '../elements/controls.tsx';
import {
  cachedShare,
  cost,
  count,
  duration,
  millisecondsAt,
  orDash,
  percent,
  usageTitle,
} from '../elements/figures.ts';
import { visible } from '../elements/visible-text.ts';
import { feedbackChips } from '../list/columns.tsx';
import { EmptyState } from '../list/empty-state.tsx';
import { Chart, type ChartProps } from './chart.tsx';
import { Groups, groupingOf, KINDS, type Kind } from './groups.tsx';

const BUCKETS = 48;

/** Number of groups that the stacked chart shows separately. */
const SERIES = 5;

/** View with totals, charts and groups for the runs that match the filter. */
export default function StatisticsView(): JSX.Element {
  const { filter, project, groupBy } = address.value;
  const read = async (signal: AbortSignal) => {
    const query = queryOf({ filter, project }, Date.now());
    query.set('group_by', groupBy);
    query.set('buckets', `${BUCKETS}`);
    query.set('series', `${SERIES}`);
    return { ...(await api.statistics(query, signal)), groupBy };
  };
  const { value, problem } = useLive(`${filter}\n${project}\n${groupBy}`, read, { isStale: () => true });
  if (value === undefined && problem === undefined) return <Pending note="Loading statistics…" />;
  if (value === undefined || value.total.runs === 0) return <EmptyState problem={problem} />;
  return (
    <section class="statistics scroll" aria-label="Statistics" tabIndex={-1} data-own-arrows>
      <Problem text={problem} />
      <Totals total={value.total} />
      <Charts statistics={value} groupName={groupingOf(value.groupBy).name} />
      <Groups statistics={value} groupBy={value.groupBy} />
    </section>
  );
}

function Totals({ total }: { total: Statistics['total'] }): JSX.Element {
  const { runs, errors, pending, usage, feedback = [] } = total;
  const facts: readonly Fact[] = [
    { name: 'Runs', value: runs.toLocaleString('en') },
    { name: 'Errors', value: `${errors.toLocaleString('en')} (${percent(errors, runs)})` },
    { name: 'Pending', value: pending.toLocaleString('en') },
    ...latenciesOf(total).flatMap(({ name, read }): Fact[] => [
      { name: `${name} p50`, value: orDash(read(total).latency_ms?.p50, duration) },
      { name: `${name} p95`, value: orDash(read(total).latency_ms?.p95, duration) },
    ]),
    { name: 'Tokens', value: orDash(usage?.total_tokens, count) },
    { name: 'Cost', value: orDash(usage?.total_cost, cost) },
    ...(usage?.cached_tokens === undefined
      ? []
      : [
          { name: 'Cached input', value: cachedShare(usage), title: usageTitle(usage, true) },
          { name: 'Saved by caching', value: orDash(usage.cache_savings, cost), title: usageTitle(usage, true) },
        ]),
    ...(feedback.length > 0 ? [{ name: 'Feedback', value: feedbackChips(feedback) }] : []),
  ];
  return <Facts class="totals" facts={facts} />;
}

/** Latencies to show: those of root runs and of model calls, or of all runs if there are none. */
function latenciesOf(total: Figures): Pick<Kind, 'name' | 'read'>[] {
  const found = KINDS.filter(({ read }) => read(total).runs > 0);
  if (found.length === 0) return [{ name: 'Latency', read: (figures) => figures }];
  return found.map(({ name, read }) => ({ name: `Latency of ${name.toLowerCase()}`, read }));
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

function chartsOf({ buckets, groups, total, to = '' }: Statistics, groupName: string): ChartProps[] {
  const times = buckets.map(({ start_time }) => Math.round(millisecondsAt(start_time)));
  const shared = { times, endMs: Math.max(millisecondsAt(to) || 0, (times.at(-1) ?? 0) + 1), zoom };
  const values = (read: (bucket: Bucket) => number | undefined) => buckets.map(read);
  const charts: ChartProps[] = [
    {
      ...shared,
      title: 'Runs',
      form: 'bars',
      print: (value) => Number(value.toFixed(1)).toLocaleString('en'),
      series: [
        { name: 'errors', color: 'bad', values: values(({ errors }) => errors) },
        { name: 'others', color: 'bar', values: values(({ runs, errors }) => runs - errors) },
      ],
    },
    ...latenciesOf(total).map(
      ({ name, read }): ChartProps => ({
        ...shared,
        title: name,
        form: 'lines',
        print: duration,
        series: [
          { name: 'p50', color: 'accent', values: values((bucket) => read(bucket).latency_ms?.p50) },
          { name: 'p95', color: 'bar', values: values((bucket) => read(bucket).latency_ms?.p95) },
        ],
      }),
    ),
    {
      ...shared,
      title: 'Tokens',
      form: 'bars',
      print: count,
      series: [
        { name: 'input', color: 'bar', values: values(({ usage }) => usage?.input_tokens) },
        { name: 'output', color: 'accent', values: values(({ usage }) => usage?.output_tokens) },
      ],
    },
    {
      ...shared,
      title: 'Cached input',
      form: 'bars',
      print: (share) => percent(share, 1),
      series: [
        {
          name: 'share of input tokens',
          color: 'accent',
          values: values(({ usage }) => usage?.cached_tokens && usage.cached_tokens / (usage.input_tokens ?? 1)),
        },
      ],
    },
    {
      ...shared,
      title: `Cost by ${groupName.toLowerCase()}`,
      form: 'bars',
      print: cost,
      series: costSeries(buckets, groups),
    },
  ];
  const hasValues = ({ series }: ChartProps): boolean =>
    series.some((one) => one.values.some((value) => value !== undefined));
  return charts.filter((chart) => chart.form === 'lines' || hasValues(chart));
}

/** The costs of the largest groups, and of all other runs. */
function costSeries(buckets: Statistics['buckets'], groups: Statistics['groups']): ChartProps['series'] {
  const costs = groups.map((group) => ({ name: group.group, values: costsOf(group.buckets ?? []) }));
  const shown = costs.filter(({ values }) => values.some((value) => value !== undefined));
  const others = costsOf(buckets).map((all, at) => {
    const rest = (all ?? 0) - shown.reduce((sum, { values }) => sum + (values[at] ?? 0), 0);
    // Sums of floats are not exact.
    return rest > (all ?? 0) / 1e9 ? rest : undefined;
  });
  const series = shown.map((one, at) => ({ ...one, name: visible(one.name), color: `series-${at}` as const }));
  return others.some((value) => value !== undefined)
    ? [...series, { name: series.length === 0 ? 'cost' : 'others', color: 'bar', values: others }]
    : series;
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
