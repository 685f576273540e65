import type { ComponentChildren, JSX } from 'preact';
import type { SortKey } from '../../receiver/query/query.ts';
import { columnIds } from '../data/preferences.ts';
import { Link } from '../elements/controls.tsx';
import { ago, cost, count, duration, exact, latencyOf, millisecondsAt, plural } from '../elements/figures.ts';
import { StatusMark } from '../elements/icon.tsx';
import { visible } from '../elements/visible-text.ts';
import type { Line } from './run-list.ts';

export type ListKind = 'traces' | 'runs';

export interface Column {
  readonly id: string;
  readonly name: string;
  /** The only list that has this column. */
  readonly list?: ListKind;
  /** Whether the list shows the column unless the user selects columns. */
  readonly isDefault: boolean;
  readonly class?: 'number' | 'wide' | 'wide preview';
  readonly sort?: SortKey;
  readonly title?: (line: Line) => string;
  readonly cell: (line: Line, nowMs: number) => ComponentChildren;
}

/** Returns all columns that a list can show. */
export function columnsOf(list: ListKind): readonly Column[] {
  return COLUMNS.filter((column) => (column.list ?? list) === list);
}

/** Returns the columns that a list shows. */
export function shownColumns(list: ListKind): readonly Column[] {
  const ids = columnIds[list].value.split(',');
  return columnsOf(list).filter(({ id, isDefault }) => id === 'name' || (ids[0] === '' ? isDefault : ids.includes(id)));
}

const TAGS_MAX = 3;
const FEEDBACK_MAX = 2;
const NAME_LENGTH_MAX = 200;

const COLUMNS: readonly Column[] = [
  { id: 'status', name: 'Status', isDefault: true, cell: ({ status }) => <StatusMark status={status} isShort /> },
  {
    id: 'name',
    name: 'Name',
    isDefault: true,
    cell: ({ trace, trace_id, id, name }) => {
      const text = visible(name.slice(0, NAME_LENGTH_MAX));
      return (
        <Link to={{ trace: trace_id, run: trace === undefined ? id : undefined }} tabIndex={-1} title={text}>
          {text}
        </Link>
      );
    },
  },
  {
    id: 'preview',
    name: 'Input → output',
    isDefault: true,
    class: 'wide preview',
    cell: (line) => <Preview line={line} />,
  },
  { id: 'input', name: 'Input', isDefault: false, class: 'wide', cell: (line) => visible(line.inputs_preview ?? '') },
  {
    id: 'output',
    name: 'Output',
    isDefault: false,
    class: 'wide',
    cell: (line) => visible(line.outputs_preview ?? ''),
  },
  {
    id: 'error',
    name: 'Error',
    isDefault: false,
    class: 'wide',
    cell: ({ error = '' }) => <span class="bad">{visible(error)}</span>,
  },
  {
    id: 'started',
    name: 'Started',
    isDefault: true,
    class: 'number',
    sort: 'start_time',
    title: ({ start_time }) => `${exact(start_time)}\n${start_time}`,
    cell: ({ start_time }, nowMs) => <time dateTime={start_time}>{ago(millisecondsAt(start_time), nowMs)}</time>,
  },
  { id: 'latency', name: 'Latency', isDefault: true, class: 'number', sort: 'latency', cell: latencyOf },
  {
    id: 'first-token',
    name: 'First token',
    isDefault: false,
    class: 'number',
    cell: ({ first_token_time: time, start_time }) =>
      time && duration(millisecondsAt(time) - millisecondsAt(start_time)),
  },
  ...(['input', 'output', 'total'] as const).map(
    (kind): Column => ({
      id: `${kind}-tokens`,
      name: kind === 'total' ? 'Tokens' : `Tokens ${kind === 'input' ? 'in' : 'out'}`,
      isDefault: kind === 'total',
      class: 'number',
      ...(kind === 'total' && { sort: 'tokens' }),
      cell: (line) => figure(usageOf(line)?.[`${kind}_tokens`], count),
    }),
  ),
  {
    id: 'cost',
    name: 'Cost',
    isDefault: true,
    class: 'number',
    sort: 'cost',
    cell: (line) => figure(usageOf(line)?.total_cost, cost),
  },
  { id: 'runs', name: 'Runs', list: 'traces', isDefault: true, class: 'number', cell: runsIn },
  {
    id: 'type',
    name: 'Type',
    list: 'runs',
    isDefault: true,
    class: 'number',
    cell: ({ run_type }) => visible(run_type),
  },
  { id: 'feedback', name: 'Feedback', list: 'traces', isDefault: true, cell: feedbackIn },
  { id: 'model', name: 'Model', list: 'runs', isDefault: true, cell: ({ model = '' }) => visible(model) },
  {
    id: 'project',
    name: 'Project',
    isDefault: false,
    cell: ({ session_name, session_id }) => visible(session_name ?? session_id ?? ''),
  },
  { id: 'user', name: 'User', isDefault: false, cell: ({ user = '' }) => visible(user) },
  { id: 'thread', name: 'Thread', isDefault: false, cell: ({ thread = '' }) => visible(thread) },
  { id: 'tags', name: 'Tags', isDefault: true, cell: tagsOf },
];

function figure(value: number | undefined, print: (value: number) => string): string | undefined {
  return value === undefined ? undefined : print(value);
}

function usageOf({ trace, usage }: Line): Line['usage'] {
  return trace?.usage ?? usage;
}

function runsIn({ trace, status }: Line): JSX.Element {
  const { runs = 1, errors = 0 } = trace ?? {};
  return (
    <>
      {runs.toLocaleString('en')}
      {errors > 0 && status !== 'error' && (
        <span class="bad" title={plural(errors, 'failed run')}>
          {' '}
          {errors} ✕
        </span>
      )}
    </>
  );
}

function feedbackIn({ trace }: Line): ComponentChildren {
  return trace?.feedback?.slice(0, FEEDBACK_MAX).map(({ key, count: times, average_score }) => (
    <span key={key} class="chip" title={`${visible(key)}: ${plural(times, 'time')}`}>
      {visible(key)} {average_score === undefined ? times : Number(average_score.toFixed(2))}
    </span>
  ));
}

function tagsOf({ tags = [] }: Line): JSX.Element {
  return (
    <>
      {tags.slice(0, TAGS_MAX).map((tag) => (
        <span key={tag} class="chip">
          {visible(tag)}
        </span>
      ))}
      {tags.length > TAGS_MAX && <span class="note">+{tags.length - TAGS_MAX}</span>}
    </>
  );
}

/** Preview of a run's input, and of its output or error. */
function Preview({ line }: { line: Line }): JSX.Element {
  const { inputs_preview = '', outputs_preview = '', error } = line;
  const output = error ?? outputs_preview;
  return (
    <>
      <span class="preview-in clip">{visible(inputs_preview)}</span>
      {output !== '' && (
        <>
          <span>→</span>
          <span class={error === undefined ? 'preview-out clip' : 'preview-out clip bad'}>{visible(output)}</span>
        </>
      )}
    </>
  );
}
