import { useSignal } from '@preact/signals';
import type { JSX } from 'preact';
import { useEffect } from 'preact/hooks';
import type { Figures, GroupKey, Statistics } from '../../receiver/query/query.ts';
import { api, problemOf } from '../data/api.ts';
import { onChanges } from '../data/changes.ts';
import { fieldTerm, parseFilter, printFilter, queryOf, withTerm } from '../data/filter.ts';
import { address, follow, go, linkTo } from '../data/navigation.ts';
import { Refresh } from '../data/refresh.ts';
import { cost, count, duration, exact } from '../elements/figures.ts';
import { visible } from '../elements/visible-text.ts';
import { EmptyState } from '../list/empty-state.tsx';
import { Chart } from './chart.tsx';

const BUCKETS = 48;

const GROUPS: readonly { readonly key: GroupKey; readonly name: string; readonly filter: string }[] = [
  { key: 'name', name: 'Name', filter: 'name' },
  { key: 'model', name: 'Model', filter: 'model' },
  { key: 'run_type', name: 'Type', filter: 'type' },
  { key: 'project', name: 'Project', filter: 'project' },
  { key: 'status', name: 'Status', filter: 'status' },
];

/** What the runs that match come to, over time and by what they have in common. */
export default function StatisticsView(): JSX.Element {
  const statistics = useSignal<(Statistics & { groupBy: GroupKey }) | undefined>(undefined);
  const problem = useSignal<string | undefined>(undefined);
  const { filter, project, groupBy } = address.value;
  useEffect(() => {
    const refresh = new Refresh(async (signal) => {
      const query = queryOf(parseFilter(filter), Date.now());
      if (project !== undefined) query.set('project', project);
      query.set('group_by', groupBy);
      query.set('buckets', `${BUCKETS}`);
      try {
        statistics.value = { ...(await api.statistics(query, signal)), groupBy };
        problem.value = undefined;
      } catch (error) {
        problem.value = problemOf(error) ?? problem.value;
      }
    });
    refresh.ask();
    const unsubscribe = onChanges(() => refresh.ask());
    return () => {
      unsubscribe();
      refresh.end();
    };
  }, [filter, project, groupBy]);

  const found = statistics.value;
  if (found === undefined && problem.value === undefined) return <p class="loading">Counting…</p>;
  if (found === undefined || found.total.runs === 0) return <EmptyState problem={problem.value} />;
  return (
    <section class="statistics" aria-label="Statistics" tabIndex={-1} data-own-arrows>
      {problem.value !== undefined && (
        <p class="problem" role="alert">
          {problem.value}
        </p>
      )}
      <Totals total={found.total} />
      <Charts statistics={found} />
      <Groups statistics={found} groupBy={found.groupBy} />
    </section>
  );
}

function Totals({ total }: { total: Figures }): JSX.Element {
  const { runs, errors, pending, latency_ms, usage } = total;
  const figures: [string, string][] = [
    ['Runs', runs.toLocaleString('en')],
    ['Errors', `${errors.toLocaleString('en')} (${percent(errors, runs)})`],
    ['Pending', pending.toLocaleString('en')],
    ['Latency p50', latency_ms === undefined ? '–' : duration(latency_ms.p50)],
    ['Latency p95', latency_ms === undefined ? '–' : duration(latency_ms.p95)],
    ['Tokens', usage?.total_tokens === undefined ? '–' : count(usage.total_tokens)],
    ['Cost', usage?.total_cost === undefined ? '–' : cost(usage.total_cost)],
  ];
  return (
    <dl class="totals">
      {figures.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}

function Charts({ statistics: { buckets } }: { statistics: Statistics }): JSX.Element {
  const times = buckets.map(({ start_time }) => exact(start_time).slice(0, 19));
  const hasUsage = buckets.some(({ usage }) => usage?.total_tokens !== undefined);
  const hasCost = buckets.some(({ usage }) => usage?.total_cost !== undefined);
  return (
    <div class="charts">
      <Chart
        title="Runs"
        form="bars"
        times={times}
        print={(value) => Number(value.toFixed(1)).toLocaleString('en')}
        series={[
          { name: 'errors', tone: 'bad', values: buckets.map(({ errors }) => errors) },
          { name: 'others', tone: 'plain', values: buckets.map(({ runs, errors }) => runs - errors) },
        ]}
      />
      <Chart
        title="Latency"
        form="lines"
        times={times}
        print={duration}
        series={[
          { name: 'p50', tone: 'accent', values: buckets.map(({ latency_ms }) => latency_ms?.p50) },
          { name: 'p95', tone: 'plain', values: buckets.map(({ latency_ms }) => latency_ms?.p95) },
        ]}
      />
      {hasUsage && (
        <Chart
          title="Tokens"
          form="bars"
          times={times}
          print={count}
          series={[
            { name: 'input', tone: 'plain', values: buckets.map(({ usage }) => usage?.input_tokens ?? 0) },
            { name: 'output', tone: 'accent', values: buckets.map(({ usage }) => usage?.output_tokens ?? 0) },
          ]}
        />
      )}
      {hasCost && (
        <Chart
          title="Cost"
          form="bars"
          times={times}
          print={cost}
          series={[{ name: 'cost', tone: 'accent', values: buckets.map(({ usage }) => usage?.total_cost ?? 0) }]}
        />
      )}
    </div>
  );
}

function Groups({
  statistics: { groups, total },
  groupBy,
}: {
  statistics: Statistics;
  groupBy: GroupKey;
}): JSX.Element {
  const by = GROUPS.find(({ key }) => key === groupBy);
  return (
    <section class="groups" aria-label={`By ${by?.name}`}>
      <header>
        <h3>By</h3>
        {GROUPS.map(({ key, name }) => (
          <button
            type="button"
            key={key}
            class="tab"
            aria-pressed={key === groupBy}
            onClick={() => go({ groupBy: key }, { replace: true })}
          >
            {name}
          </button>
        ))}
      </header>
      <div class="groups-table">
        <table>
          <thead>
            <tr>
              <th scope="col">{by?.name}</th>
              {['Runs', 'Share', 'Errors', 'p50', 'p90', 'p95', 'p99', 'Max', 'Tokens', 'Cost'].map((name) => (
                <th key={name} scope="col" class="number">
                  {name}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {groups.map((figures) => (
              <Group key={figures.group} figures={figures} filterKey={by?.filter ?? 'name'} total={total.runs} />
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}

function Group({
  figures,
  filterKey,
  total,
}: {
  figures: Statistics['groups'][number];
  filterKey: string;
  total: number;
}): JSX.Element {
  const { group, runs, errors, latency_ms, usage } = figures;
  const latency = (value: number | undefined): string => (value === undefined ? '–' : duration(value));
  const cells = [
    runs.toLocaleString('en'),
    percent(runs, total),
    errors === 0 ? '–' : `${errors.toLocaleString('en')} (${percent(errors, runs)})`,
    latency(latency_ms?.p50),
    latency(latency_ms?.p90),
    latency(latency_ms?.p95),
    latency(latency_ms?.p99),
    latency(latency_ms?.max),
    usage?.total_tokens === undefined ? '–' : count(usage.total_tokens),
    usage?.total_cost === undefined ? '–' : cost(usage.total_cost),
  ];
  return (
    <tr>
      <th scope="row">
        {group === '' ? <span class="note">none</span> : <GroupLink filterKey={filterKey} group={group} />}
      </th>
      {cells.map((cell, index) => (
        <td key={index} class={index === 2 && errors > 0 ? 'number bad' : 'number'}>
          {cell}
        </td>
      ))}
    </tr>
  );
}

/** To the runs of the group. */
function GroupLink({ filterKey, group }: { filterKey: string; group: string }): JSX.Element {
  const filter = printFilter(withTerm(parseFilter(address.value.filter), fieldTerm(filterKey, group)));
  const place = { view: 'runs', filter } as const;
  return (
    <a href={linkTo(place)} onClick={(event) => follow(event, place)}>
      {visible(group)}
    </a>
  );
}

function percent(part: number, whole: number): string {
  const share = whole === 0 ? 0 : (part / whole) * 100;
  return `${share === 0 || share >= 10 ? Math.round(share) : Number(share.toPrecision(2))} %`;
}
