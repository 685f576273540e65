import type { ComponentChildren, JSX } from 'preact';
import { useState } from 'preact/hooks';
import type { GroupFigures, GroupKey, RunFigures, Statistics } from '../../receiver/query/query.ts';
import { metadataKeyOf } from '../../receiver/query/query-keys.ts';
import { api } from '../data/api.ts';
import { condition, metadataCondition, withTerms } from '../data/filter.ts';
import { address, go } from '../data/navigation.ts';
import { Link, Toggle } from '../elements/controls.tsx';
import { cost, count, duration, orDash } from '../elements/figures.ts';
import { visible } from '../elements/visible-text.ts';
import { feedbackChips } from '../list/columns.tsx';

interface Grouping {
  readonly name: string;
  /** Returns the condition that selects the runs of a group. */
  readonly filter: (group: string) => string;
}

const GROUPINGS: readonly (Grouping & { readonly key: GroupKey })[] = (
  [
    ['name', 'Name', 'name'],
    ['model', 'Model', 'model'],
    ['run_type', 'Type', 'type'],
    ['project', 'Project', 'project'],
    ['status', 'Status', 'status'],
    ['user', 'User', 'user'],
    ['thread', 'Thread', 'thread'],
    ['tag', 'Tag', 'tag'],
  ] as const
).map(([key, name, field]) => ({ key, name, filter: (group) => condition(field, group) }));

export function groupingOf(groupBy: GroupKey): Grouping {
  const key = metadataKeyOf(groupBy) ?? '';
  const ofMetadata = { name: visible(key), filter: (group: string) => metadataCondition(key, group) };
  return GROUPINGS.find((one) => one.key === groupBy) ?? ofMetadata;
}

type Kind = readonly [name: string, read: (group: GroupFigures) => RunFigures, ranks: readonly Rank[]];
type Rank = 'p50' | 'p95' | 'p99' | 'max';

const ALL: Kind = ['All runs', (group) => group, ['p50', 'p95', 'p99', 'max']];
const PARTS: readonly Kind[] = [
  ['Root runs', ({ roots }) => roots, ['p50', 'p95']],
  ['Model calls', ({ model_calls }) => model_calls, ['p50', 'p95']],
];

/** A table of the groups. Root runs and model calls have columns of their own in groups that contain other runs, too. */
export function Groups({ statistics, groupBy }: { statistics: Statistics; groupBy: GroupKey }): JSX.Element {
  const { groups, total } = statistics;
  const { name, filter } = groupingOf(groupBy);
  const parts = PARTS.filter(([, read]) =>
    groups.some((group) => read(group).runs > 0 && read(group).runs < group.runs),
  );
  const hasFeedback = groups.some(({ feedback }) => feedback !== undefined);
  const last = ['Tokens', 'Cost', ...(hasFeedback ? ['Feedback'] : [])];
  return (
    <section class="groups" aria-label={`By ${name}`}>
      <GroupMenu groupBy={groupBy} />
      {groups.length === 0 && <p class="note">No run has a value.</p>}
      <table hidden={groups.length === 0}>
        <thead>
          {parts.length > 0 && (
            <tr>
              <td />
              {[ALL, ...parts].map(([kind, , ranks]) => (
                <th key={kind} scope="colgroup" colSpan={ranks.length + (kind === ALL[0] ? 3 : 1)}>
                  {kind}
                </th>
              ))}
              <td colSpan={last.length} />
            </tr>
          )}
          <tr>
            <th scope="col">{name}</th>
            {['Runs', 'Share', 'Errors', ...ALL[2], ...parts.flatMap(([, , ranks]) => ['Runs', ...ranks]), ...last].map(
              (column, index) => (
                <th key={index} scope="col" class="number">
                  {column === 'max' ? 'Max' : column}
                </th>
              ),
            )}
          </tr>
        </thead>
        <tbody>
          {groups.map((figures) => (
            <Group
              key={figures.group}
              figures={figures}
              filter={filter}
              total={total.runs}
              parts={parts}
              hasFeedback={hasFeedback}
            />
          ))}
        </tbody>
      </table>
    </section>
  );
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
      <h3>By</h3>
      {GROUPINGS.map((one) => (
        <Toggle key={one.key} isOn={one.key === groupBy} toggle={() => select(one.key)}>
          {one.name}
        </Toggle>
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

interface GroupProps {
  figures: GroupFigures;
  filter: Grouping['filter'];
  total: number;
  parts: readonly Kind[];
  hasFeedback: boolean;
}

function Group({ figures, filter, total, parts, hasFeedback }: GroupProps): JSX.Element {
  const { group, runs, errors, usage, feedback } = figures;
  const latencies = ([, read, ranks]: Kind): string[] =>
    ranks.map((rank) => orDash(read(figures).latency_ms?.[rank], duration));
  const cells: ComponentChildren[] = [
    runs.toLocaleString('en'),
    percent(runs, total),
    errors === 0 ? '–' : `${errors.toLocaleString('en')} (${percent(errors, runs)})`,
    ...latencies(ALL),
    ...parts.flatMap((part) => [orDash(part[1](figures).runs || undefined, count), ...latencies(part)]),
    orDash(usage?.total_tokens, count),
    orDash(usage?.total_cost, cost),
    ...(hasFeedback ? [feedbackChips(feedback)] : []),
  ];
  const to = { view: 'runs', filter: withTerms(address.value.filter, filter(group)) } as const;
  return (
    <tr>
      <th scope="row" class="clip">
        {group === '' ? <span class="note">none</span> : <Link to={to}>{visible(group)}</Link>}
      </th>
      {cells.map((cell, index) => (
        <td key={index} class={index === 2 && errors > 0 ? 'number bad' : 'number'}>
          {cell}
        </td>
      ))}
    </tr>
  );
}

export function percent(part: number, whole: number): string {
  const share = whole === 0 ? 0 : (part / whole) * 100;
  return `${share === 0 || share >= 10 ? Math.round(share) : Number(share.toPrecision(2))} %`;
}
