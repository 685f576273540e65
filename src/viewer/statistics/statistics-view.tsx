import './statistics.css';
import type { JSX } from 'preact';
import { useMemo } from 'preact/hooks';
import type { Figures, Statistics } from '../../receiver/domain/query/query.ts';
import { api } from '../data/api.ts';
import { queryOf } from '../data/filter.ts';
import { roundedNowMs, STATISTICS, useLive } from '../data/live-value.ts';
import { address, go } from '../data/navigation.ts';
import { rangeIn, withRange } from '../data/time-range.ts';
import { Pending, Problem } from '../elements/controls.tsx';
import {
  cachedShare,
  costFigure,
  countFigure,
  durationFigure,
  exact,
  millisecondsAt,
  orDash,
  percent,
  plural,
} from '../elements/figures.ts';
import { visibleText } from '../elements/visible-text.ts';
import { feedbackChips } from '../list/columns.tsx';
import { EmptyState } from '../list/empty-state.tsx';
import { Chart, type ChartProps, type Series } from './chart.tsx';
import { Groups, groupingOf, KINDS, type Kind } from './groups.tsx';

const BUCKETS = 48;

/** Number of groups that the stacked chart shows separately. */
const SERIES = 5;

/** While most of the buckets are empty, the others are read again as shorter buckets. */
const READS_MAX = 3;

const TIME_ZONE = Intl.DateTimeFormat().resolvedOptions().timeZone;

export default function StatisticsView(): JSX.Element {
  const { filter, project, groupBy } = address.value;
  const readRange = async (ranged: string, signal: AbortSignal, reads = 1): Promise<Statistics> => {
    const query = queryOf({ filter: ranged, project }, roundedNowMs());
    const fields = { group_by: groupBy, buckets: BUCKETS, series: SERIES, rank_by: 'cost', time_zone: TIME_ZONE };
    for (const [name, value] of Object.entries(fields)) query.set(name, `${value}`);
    const all = await api.statistics(query, signal);
    const used = fitted(all);
    if (reads === READS_MAX || used.buckets.length === 0 || used.buckets.length * 2 > all.buckets.length) return used;
    const range = { since: used.from, before: used.to === all.to ? rangeIn(ranged).before : used.to };
    return readRange(withRange(filter, range), signal, reads + 1);
  };
  const read = async (signal: AbortSignal) => ({ ...(await readRange(filter, signal)), groupBy });
  const { value, problem } = useLive(`${filter}\n${project}\n${groupBy}`, read, STATISTICS);
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

/** Returns the statistics without the empty buckets at both ends. */
function fitted(statistics: Statistics): Statistics {
  const { buckets, groups, to } = statistics;
  const [first, last] = [buckets.findIndex(({ runs }) => runs > 0), buckets.findLastIndex(({ runs }) => runs > 0)];
  const cut = <Bucket,>(all: readonly Bucket[]): Bucket[] => all.slice(Math.max(0, first), last + 1);
  const [start, end] = [buckets[first]?.start_time, buckets[last + 1]?.start_time ?? to];
  return {
    ...statistics,
    ...(start !== undefined && { from: start }),
    ...(end !== undefined && { to: end }),
    buckets: cut(buckets),
    groups: groups.map((group) => (group.buckets === undefined ? group : { ...group, buckets: cut(group.buckets) })),
  };
}

function Totals({ statistics }: { statistics: Statistics }): JSX.Element {
  const [from, to] = [statistics.from, statistics.to].map((time = '') => exact(time).slice(0, -7));
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

function cardsOf(total: Figures): Card[] {
  const { runs, errors, pending, roots, model_calls: calls, usage = {}, unpriced_calls: unpriced } = total;
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
    latency && ['Latency p50', durationFigure(latency.p50), `of ${name}`],
    latency && ['Latency p95', durationFigure(latency.p95), `of ${name}`],
    roots.runs > 0 &&
      calls.latency_ms && [
        'Model call p50',
        durationFigure(calls.latency_ms.p50),
        `p95 ${durationFigure(calls.latency_ms.p95)}`,
      ],
    (total_cost ?? unpriced) !== undefined && [
      'Cost',
      orDash(total_cost, costFigure),
      unpriced === undefined ? `of ${plural(calls.runs, 'model call')}` : `${plural(unpriced, 'call')} without a price`,
    ],
    total_cost !== undefined && roots.runs > 0 && ['Cost per trace', costFigure(total_cost / roots.runs), 'on average'],
    total_tokens !== undefined && [
      'Tokens',
      countFigure(total_tokens),
      `${countFigure(input_tokens)} in, ${countFigure(output_tokens)} out`,
    ],
    cached_tokens !== undefined && ['Cached input', cachedShare(usage) ?? '', `${countFigure(cached_tokens)} tokens`],
    saved !== undefined && [
      'Saved by caching',
      costFigure(saved),
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

function Charts({ statistics, groupName }: { statistics: Statistics; groupName: string }): JSX.Element {
  const charts = useMemo(() => {
    const times = statistics.buckets.map(({ start_time }) => Math.round(millisecondsAt(start_time)));
    const [beforeMs = 0, lastMs = beforeMs] = times.slice(-2);
    // The last bucket may be shorter, but its bar has the width of the others.
    const endMs = Math.max(millisecondsAt(statistics.to ?? '') || 0, 2 * lastMs - beforeMs, lastMs + 1);
    return chartsOf(statistics, groupName).map((chart) => ({ ...chart, times, endMs, zoom }));
  }, [statistics]);
  return (
    <div class="charts">
      {charts.map((props) => (
        <Chart key={JSON.stringify([props.title, props.series.map(({ name }) => name)])} {...props} />
      ))}
    </div>
  );
}

type UntimedChart = Omit<ChartProps, 'times' | 'endMs' | 'zoom'>;

function chartsOf(statistics: Statistics, groupName: string): UntimedChart[] {
  const { total, buckets } = statistics;
  const series = (name: string, color: Series['color'], read: (figures: Figures) => number | undefined): Series => ({
    ...{ name, color, total: read(total) },
    values: buckets.map(read),
  });
  const { name, read } = kindOf(total);
  const runs = [
    series('errors', 'bad', ({ errors }) => errors),
    series('others', 'bar', (figures) => figures.runs - figures.errors),
  ];
  const traces = [
    series('error', 'bad', ({ roots }) => roots.errors),
    series('failed below', 'amber', ({ roots }) => roots.failed_below),
    series('others', 'bar', ({ roots }) => roots.runs - roots.errors - roots.failed_below),
  ];
  const latencies = [
    series('p50', 'accent', (figures) => read(figures).latency_ms?.p50),
    series('p95', 'bar', (figures) => read(figures).latency_ms?.p95),
  ];
  const tokens = [
    series('output', 'accent', ({ usage }) => usage?.output_tokens),
    series('input', 'bar', ({ usage }) => usage?.input_tokens && usage.input_tokens - (usage.cached_tokens ?? 0)),
    series('cached', 'accent-half', ({ usage }) => usage?.cached_tokens),
  ];
  const ofTraces: UntimedChart = { title: 'Traces', form: 'bars', print: average, series: traces };
  const charts: readonly UntimedChart[] = [
    total.roots.runs > 0 ? ofTraces : { ...ofTraces, title: 'Runs', series: runs },
    { title: `Latency of ${name}`, form: 'lines', print: durationFigure, series: latencies },
    { title: 'Tokens', form: 'bars', print: countFigure, series: tokens },
    {
      title: `Cost by ${groupName.toLowerCase()}`,
      form: 'bars',
      print: costFigure,
      isRanked: true,
      series: costs(statistics),
    },
  ];
  const hasValues = ({ values }: Series): boolean => values.some((value) => value !== undefined);
  return charts
    .map((chart) => ({ ...chart, series: chart.series.filter(hasValues) }))
    .filter((chart) => chart.series.length > 0);
}

function average(value: number): string {
  return Number(value.toFixed(1)).toLocaleString('en');
}

/** The costs of the most expensive groups, and of all other runs. */
function costs({ total, buckets, groups }: Statistics): Series[] {
  // The last cost of a column is that of the whole time.
  const columnOf = (parts: readonly Pick<Figures, 'usage'>[], whole: Pick<Figures, 'usage'>) =>
    [...parts, whole].map(({ usage }) => usage?.total_cost);
  const shown = groups
    .filter((group) => group.buckets?.some(({ usage }) => usage?.total_cost !== undefined))
    .map((group) => ({ name: visibleText(group.group), column: columnOf(group.buckets ?? [], group) }));
  const others = columnOf(buckets, total).map((all = 0, at) => {
    const rest = shown.reduce((left, { column }) => left - (column[at] ?? 0), all);
    // Sums of floats are not exact.
    return rest > all / 1e9 ? rest : undefined;
  });
  return [...shown, { name: shown.length === 0 ? 'cost' : 'others', column: others }].map(({ name, column }, at) => ({
    name,
    color: at < shown.length ? `series-${at}` : 'bar',
    values: column.slice(0, -1),
    total: column.at(-1),
  }));
}

/** Sets the time range of the filter. If no range is given, removes the time range. */
function zoom(range?: { fromMs: number; toMs: number }): void {
  const at = (ms: number): string => new Date(ms).toISOString();
  const times = range && { since: at(range.fromMs), before: at(Math.max(range.toMs, range.fromMs + 1)) };
  go({ filter: withRange(address.value.filter, times ?? {}) });
}
