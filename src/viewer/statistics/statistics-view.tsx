import type { JSX } from 'preact';
import { useMemo } from 'preact/hooks';
import type { Figures, GroupKey, Statistics } from '../../receiver/query/query.ts';
import { api } from '../data/api.ts';
import { condition, queryOf, withoutTerms, withTerms } from '../data/filter.ts';
import { useLive } from '../data/live-value.ts';
import { address, go } from '../data/navigation.ts';
import { type Fact, Facts, Link, Pending, Problem, Toggle } from '../elements/controls.tsx';
import { cost, count, duration, millisecondsAt, orDash } from '../elements/figures.ts';
import { visible } from '../elements/visible-text.ts';
import { EmptyState } from '../list/empty-state.tsx';
import { Chart, type ChartProps } from './chart.tsx';

const BUCKETS = 48;

const GROUPS: readonly { readonly key: GroupKey; readonly name: string; readonly filter: string }[] = [
  { key: 'name', name: 'Name', filter: 'name' },
  { key: 'model', name: 'Model', filter: 'model' },
  { key: 'run_type', name: 'Type', filter: 'type' },
  { key: 'project', name: 'Project', filter: 'project' },
  { key: 'status', name: 'Status', filter: 'status' },
];

/** View with totals, charts and groups for the runs that match the filter. */
export default function StatisticsView(): JSX.Element {
  const { filter, project, groupBy } = address.value;
  const read = async (signal: AbortSignal) => {
    const query = queryOf({ filter, project }, Date.now());
    query.set('group_by', groupBy);
    query.set('buckets', `${BUCKETS}`);
    return { ...(await api.statistics(query, signal)), groupBy };
  };
  const { value, problem } = useLive(`${filter}\n${project}\n${groupBy}`, read, { isStale: () => true });
  if (value === undefined && problem === undefined) return <Pending note="Loading statistics…" />;
  if (value === undefined || value.total.runs === 0) return <EmptyState problem={problem} />;
  return (
    <section class="statistics scroll" aria-label="Statistics" tabIndex={-1} data-own-arrows>
      <Problem text={problem} />
      <Totals total={value.total} />
      <Charts statistics={value} />
      <Groups statistics={value} groupBy={value.groupBy} />
    </section>
  );
}

function Totals({ total }: { total: Figures }): JSX.Element {
  const { runs, errors, pending, latency_ms, usage } = total;
  const facts: readonly Fact[] = [
    { name: 'Runs', value: runs.toLocaleString('en') },
    { name: 'Errors', value: `${errors.toLocaleString('en')} (${percent(errors, runs)})` },
    { name: 'Pending', value: pending.toLocaleString('en') },
    { name: 'Latency p50', value: orDash(latency_ms?.p50, duration) },
    { name: 'Latency p95', value: orDash(latency_ms?.p95, duration) },
    { name: 'Tokens', value: orDash(usage?.total_tokens, count) },
    { name: 'Cost', value: orDash(usage?.total_cost, cost) },
  ];
  return <Facts class="totals" facts={facts} />;
}

type Bucket = Statistics['buckets'][number];

function Charts({ statistics }: { statistics: Statistics }): JSX.Element {
  const charts = useMemo(() => chartsOf(statistics), [statistics]);
  return (
    <div class="charts">
      {charts.map((props) => (
        <Chart key={props.title} {...props} />
      ))}
    </div>
  );
}

function chartsOf({ buckets, to = '' }: Statistics): ChartProps[] {
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
    {
      ...shared,
      title: 'Latency',
      form: 'lines',
      print: duration,
      series: [
        { name: 'p50', color: 'accent', values: values(({ latency_ms }) => latency_ms?.p50) },
        { name: 'p95', color: 'bar', values: values(({ latency_ms }) => latency_ms?.p95) },
      ],
    },
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
      title: 'Cost',
      form: 'bars',
      print: cost,
      series: [{ name: 'cost', color: 'accent', values: values(({ usage }) => usage?.total_cost) }],
    },
  ];
  const hasValues = ({ series }: ChartProps): boolean =>
    series.some((one) => one.values.some((value) => value !== undefined));
  return charts.filter((chart) => chart.form === 'lines' || hasValues(chart));
}

/** Sets the time range of the filter. If no range is given, removes the time range. */
function zoom(range?: { fromMs: number; toMs: number }): void {
  const { filter } = address.value;
  if (range === undefined) {
    go({ filter: withoutTerms(filter, ({ parameter }) => parameter.startsWith('started_')) });
    return;
  }
  const from = new Date(range.fromMs).toISOString();
  const before = new Date(Math.max(range.toMs, range.fromMs + 1)).toISOString();
  go({ filter: withTerms(filter, `since:${from} before:${before}`) });
}

function Groups({ statistics, groupBy }: { statistics: Statistics; groupBy: GroupKey }): JSX.Element {
  const { groups, total } = statistics;
  const { name, filter } = GROUPS.find(({ key }) => key === groupBy) ?? { name: '', filter: 'name' };
  return (
    <section class="groups" aria-label={`By ${name}`}>
      <header class="line">
        <h3>By</h3>
        {GROUPS.map((one) => (
          <Toggle key={one.key} isOn={one.key === groupBy} toggle={() => go({ groupBy: one.key }, { replace: true })}>
            {one.name}
          </Toggle>
        ))}
      </header>
      <table>
        <thead>
          <tr>
            <th scope="col">{name}</th>
            {['Runs', 'Share', 'Errors', 'p50', 'p90', 'p95', 'p99', 'Max', 'Tokens', 'Cost'].map((column) => (
              <th key={column} scope="col" class="number">
                {column}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {groups.map((figures) => (
            <Group key={figures.group} figures={figures} filter={filter} total={total.runs} />
          ))}
        </tbody>
      </table>
    </section>
  );
}

function Group(props: { figures: Statistics['groups'][number]; filter: string; total: number }): JSX.Element {
  const { group, runs, errors, latency_ms, usage } = props.figures;
  const cells = [
    runs.toLocaleString('en'),
    percent(runs, props.total),
    errors === 0 ? '–' : `${errors.toLocaleString('en')} (${percent(errors, runs)})`,
    ...(['p50', 'p90', 'p95', 'p99', 'max'] as const).map((rank) => orDash(latency_ms?.[rank], duration)),
    orDash(usage?.total_tokens, count),
    orDash(usage?.total_cost, cost),
  ];
  const filter = withTerms(address.value.filter, condition(props.filter, group));
  return (
    <tr>
      <th scope="row">
        {group === '' ? <span class="note">none</span> : <Link to={{ view: 'runs', filter }}>{visible(group)}</Link>}
      </th>
      {cells.map((cell, index) => (
        <td key={index} class={index === 2 && errors > 0 ? 'number bad' : 'number'}>
          {cell}
        </td>
      ))}
    </tr>
  );
}

function percent(part: number, whole: number): string {
  const share = whole === 0 ? 0 : (part / whole) * 100;
  return `${share === 0 || share >= 10 ? Math.round(share) : Number(share.toPrecision(2))} %`;
}
