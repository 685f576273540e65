import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import type { Figures, GroupFigures, GroupKey, RunFigures, Statistics } from '../../receiver/domain/query/query.ts';
import { GROUP_KEYS, metadataKeyOf } from '../../receiver/domain/query/query-keys.ts';
import { api } from '../data/api.ts';
import { condition, metadataCondition, withTerms } from '../data/filter.ts';
import { address, go } from '../data/navigation.ts';
import { Link, Toggle } from '../elements/controls.tsx';
import { cachedShare, costFigure, countFigure, durationFigure, orDash, percent } from '../elements/figures.ts';
import { Table, type TableColumn } from '../elements/table.tsx';
import { visibleText } from '../elements/visible-text.ts';
import { feedbackChips } from '../list/columns.tsx';

interface Grouping {
  readonly name: string;
  /** Returns the condition that selects the runs of a group. */
  readonly filter: (group: string) => string;
}

export function groupingOf(groupBy: GroupKey): Grouping {
  const key = metadataKeyOf(groupBy);
  if (key !== undefined) return { name: visibleText(key), filter: (group) => metadataCondition(key, group) };
  const field = groupBy === 'run_type' ? 'type' : groupBy;
  return { name: field.charAt(0).toUpperCase() + field.slice(1), filter: (group) => condition(field, group) };
}

/** Runs whose latencies are shown separately, because they differ too much from those of other runs. */
export interface Kind {
  readonly name: string;
  /** Word before the names of the columns. */
  readonly prefix: string;
  readonly read: (figures: Figures) => RunFigures;
}

export const KINDS: readonly Kind[] = [
  { name: 'Traces', prefix: 'Trace ', read: ({ roots }) => roots },
  { name: 'Model calls', prefix: 'Call ', read: ({ model_calls }) => model_calls },
];

/** A table of the groups, with buttons that select the field to group by. */
export function Groups({ statistics, groupBy }: { statistics: Statistics; groupBy: GroupKey }): JSX.Element {
  const { groups } = statistics;
  return (
    <section class="groups" aria-label={`By ${groupingOf(groupBy).name}`}>
      <GroupMenu groupBy={groupBy} />
      {groups.length === 0 ? (
        <p class="note">No run has a value.</p>
      ) : (
        <Table columns={columnsOf(statistics, groupBy)} items={groups} keyOf={({ group }) => group} />
      )}
    </section>
  );
}

/** Returns the columns of the groups. Kinds of runs have columns only if some groups contain other runs too. */
function columnsOf({ groups, total }: Statistics, groupBy: GroupKey): TableColumn<GroupFigures>[] {
  const { name, filter } = groupingOf(groupBy);
  const { unpriced_calls, usage: { cached_tokens, cache_savings, total_cost } = {} } = total;
  const number = (title: string, cell: TableColumn<GroupFigures>['cell']) =>
    ({ name: title, class: 'number', cell }) as const;
  const latency = (rank: 'p50' | 'p95', prefix = '', read: Kind['read'] = (figures) => figures) =>
    number(prefix + rank, (figures) => orDash(read(figures).latency_ms?.[rank], durationFigure));
  const kinds = KINDS.filter(({ read }) =>
    groups.some((group) => read(group).runs > 0 && read(group).runs < group.runs),
  );
  const columns: readonly (TableColumn<GroupFigures> | false)[] = [
    { name, class: 'clip', cell: ({ group }) => <GroupLink group={group} added={filter(group)} /> },
    number('Runs', ({ runs }) => runs.toLocaleString('en')),
    number('Share', ({ runs }) => percent(runs, total.runs)),
    number('Errors', ({ errors, runs }) =>
      errors === 0 ? '–' : <span class="bad">{`${errors.toLocaleString('en')} (${percent(errors, runs)})`}</span>,
    ),
    ...(['p50', 'p95'] as const).map((rank) => latency(rank)),
    ...kinds.flatMap(({ name: kind, prefix, read }) => [
      number(kind, (figures) => orDash(read(figures).runs || undefined, countFigure)),
      latency('p50', prefix, read),
      latency('p95', prefix, read),
    ]),
    number('Tokens', ({ usage }) => orDash(usage?.total_tokens, countFigure)),
    cached_tokens !== undefined && number('Cached', ({ usage }) => cachedShare(usage) ?? '–'),
    cache_savings !== undefined && number('Saved', ({ usage }) => orDash(usage?.cache_savings, costFigure)),
    number('Cost', ({ usage }) => orDash(usage?.total_cost, costFigure)),
    unpriced_calls !== undefined && number('No price', (figures) => orDash(figures.unpriced_calls, countFigure)),
    total_cost !== undefined &&
      number('Of cost', ({ usage }) => <Share part={usage?.total_cost ?? 0} whole={total_cost} />),
    groups.some(({ feedback }) => feedback !== undefined) &&
      number('Feedback', ({ feedback }) => feedbackChips(feedback)),
  ];
  return columns.filter((column) => column !== false);
}

function Share({ part, whole }: { part: number; whole: number }): JSX.Element {
  return (
    <span class="share" style={{ '--of': (part / whole) * 100 }}>
      {percent(part, whole)}
    </span>
  );
}

function GroupLink({ group, added }: { group: string; added: string }): JSX.Element {
  if (group === '') return <span class="note">none</span>;
  return <Link to={{ view: 'runs', filter: withTerms(address.value.filter, added) }}>{visibleText(group)}</Link>;
}

function GroupMenu({ groupBy }: { groupBy: GroupKey }): JSX.Element {
  const select = (key: GroupKey): void => go({ groupBy: key }, { replace: true });
  const key = metadataKeyOf(groupBy) ?? '';
  const [keys, setKeys] = useState<readonly string[]>([]);
  const suggest = async (): Promise<void> => {
    const { project } = address.value;
    const query = new URLSearchParams({ field: 'meta', ...(project !== undefined && { project }) });
    // Without suggestions, the user can still type a key.
    const { items } = await api.suggestions(query).catch(() => ({ items: [] }));
    setKeys(items.map(({ value }) => value));
  };
  return (
    <header class="line">
      <h2>By</h2>
      {GROUP_KEYS.map((one) => (
        <Toggle key={one} text={groupingOf(one).name} isOn={one === groupBy} onClick={() => select(one)} />
      ))}
      <input
        key={key}
        class="group-key"
        aria-label="Metadata key"
        placeholder="Metadata key…"
        defaultValue={key}
        list="metadata-keys"
        onFocus={suggest}
        onChange={({ currentTarget: { value } }) => select(value.trim() === '' ? 'name' : `meta.${value.trim()}`)}
      />
      <datalist id="metadata-keys">
        {keys.map((one) => (
          <option key={one} value={one} />
        ))}
      </datalist>
    </header>
  );
}
