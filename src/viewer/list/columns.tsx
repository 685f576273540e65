import type { ComponentChildren, JSX } from 'preact';
import type { FeedbackFigures } from '../../receiver/domain/feedback.ts';
import type { SortKey } from '../../receiver/domain/query/query.ts';
import type { Usage } from '../../receiver/domain/run-view.ts';
import type { Address } from '../data/address.ts';
import { condition, withTerms } from '../data/filter.ts';
import { address } from '../data/navigation.ts';
import { columnIds } from '../data/preferences.ts';
import { Link } from '../elements/controls.tsx';
import {
  ago,
  cachedShare,
  costFigure,
  countFigure,
  exact,
  firstTokenOf,
  latencyOf,
  millisecondsAt,
  plural,
  usageTitle,
} from '../elements/figures.ts';
import { StatusMark } from '../elements/icon.tsx';
import { visibleText } from '../elements/visible-text.ts';
import { type Line, shownOutcome } from './run-list.ts';

export type ListKind = 'traces' | 'runs';

export interface Column {
  readonly id: string;
  readonly name: string;
  /** The only list that has this column. */
  readonly list?: ListKind;
  /** Whether the list shows the column only if the user selects it. */
  readonly isExtra?: boolean;
  /** Number of different values from which the list has the column, unless the user selects columns. */
  readonly valuesMin?: number;
  /** Content of the head, if it is more than the name. */
  readonly head?: ComponentChildren;
  readonly class?: 'number' | 'wide' | 'wide preview';
  readonly sort?: SortKey;
  readonly title?: (line: Line) => string;
  readonly cell: (line: Line, nowMs: number) => ComponentChildren;
}

export function columnsOf(list: ListKind): readonly Column[] {
  return COLUMNS.filter((column) => (column.list ?? list) === list);
}

export function selectedColumns(list: ListKind): readonly Column[] {
  const ids = columnIds[list].value.split(',');
  return columnsOf(list).filter(({ id, isExtra }) => id === 'name' || (ids[0] === '' ? !isExtra : ids.includes(id)));
}

/** Returns the columns that a list with these rows shows. A column that sorts the list stays. */
export function shownColumns(list: ListKind, lines: readonly Line[]): readonly Column[] {
  const columns = selectedColumns(list);
  if (columnIds[list].value !== '') return columns;
  const hasValues = ({ cell, valuesMin = 0 }: Column): boolean =>
    valuesMin === 0 || new Set(lines.flatMap((line) => cell(line, 0)).filter(Boolean)).size >= valuesMin;
  return columns.filter((column) => column.sort === address.value.sort || hasValues(column));
}

const TAGS_MAX = 3;
const FEEDBACK_MAX = 2;
const NAME_LENGTH_MAX = 200;

const COLUMNS: readonly Column[] = [
  { id: 'status', name: 'Status', cell: (line) => <StatusMark status={shownOutcome(line)} isShort /> },
  {
    id: 'name',
    name: 'Name',
    cell: ({ trace, trace_id, id, name }) =>
      link({ trace: trace_id, run: trace === undefined ? id : undefined }, name.slice(0, NAME_LENGTH_MAX)),
  },
  {
    id: 'project',
    name: 'Project',
    valuesMin: 2,
    cell: (line) => visibleText(line.session_name ?? line.session_id ?? ''),
  },
  {
    id: 'preview',
    name: 'Input → output',
    head: [<span key="input">Input</span>, <span key="to"> </span>, <span key="output">Output</span>],
    class: 'wide preview',
    cell: previewOf,
  },
  { id: 'input', name: 'Input', isExtra: true, class: 'wide', cell: (line) => visibleText(line.inputs_preview ?? '') },
  {
    id: 'output',
    name: 'Output',
    isExtra: true,
    class: 'wide',
    cell: (line) => visibleText(line.outputs_preview ?? ''),
  },
  { id: 'error', name: 'Error', isExtra: true, class: 'wide', cell: ({ error = '' }) => visibleText(error) },
  { id: 'type', name: 'Type', list: 'runs', cell: ({ run_type }) => visibleText(run_type) },
  { id: 'model', name: 'Model', list: 'runs', cell: ({ model = '' }) => visibleText(model) },
  {
    id: 'user',
    name: 'User',
    valuesMin: 1,
    cell: ({ user }) => user && link({ filter: withTerms(address.value.filter, condition('user', user)) }, user),
  },
  {
    id: 'thread',
    name: 'Thread',
    isExtra: true,
    cell: ({ thread }) => thread && link({ view: 'threads', thread }, thread),
  },
  {
    id: 'feedback',
    name: 'Feedback',
    valuesMin: 1,
    list: 'traces',
    cell: ({ trace }) => feedbackChips(trace?.feedback),
  },
  { id: 'tags', name: 'Tags', valuesMin: 1, cell: tagsOf },
  {
    id: 'runs',
    name: 'Runs',
    list: 'traces',
    isExtra: true,
    class: 'number',
    cell: ({ trace }) => trace && countFigure(trace.runs),
  },
  { id: 'latency', name: 'Latency', class: 'number', sort: 'latency', cell: latencyOf },
  { id: 'first-token', name: 'First token', isExtra: true, class: 'number', cell: firstTokenOf },
  { id: 'input-tokens', name: 'Tokens in', isExtra: true, ...usage('input_tokens', countFigure) },
  { id: 'output-tokens', name: 'Tokens out', isExtra: true, ...usage('output_tokens', countFigure) },
  { id: 'tokens', name: 'Tokens', sort: 'tokens', title: usageTitleOf, ...usage('total_tokens', countFigure) },
  { id: 'cost', name: 'Cost', valuesMin: 1, sort: 'cost', title: usageTitleOf, ...usage('total_cost', costFigure) },
  {
    id: 'cached',
    name: 'Cached',
    isExtra: true,
    class: 'number',
    title: usageTitleOf,
    cell: (line) => cachedShare(usageOf(line)),
  },
  {
    id: 'started',
    name: 'Started',
    class: 'number',
    sort: 'start_time',
    title: ({ start_time }) => `${exact(start_time)}\n${start_time}`,
    cell: ({ start_time }, nowMs) => <time dateTime={start_time}>{ago(millisecondsAt(start_time), nowMs)}</time>,
  },
];

function usage(key: keyof Usage, print: (value: number) => string): Pick<Column, 'class' | 'cell'> {
  const cell: Column['cell'] = (line) => {
    const value = usageOf(line)?.[key];
    return value !== undefined && print(value);
  };
  return { class: 'number', cell };
}

function usageTitleOf(line: Line): string {
  return usageTitle(usageOf(line));
}

/** Returns the usage of the whole trace in a list of traces, otherwise of the run. */
export function usageOf({ trace, usage }: Line): Usage | undefined {
  return trace?.usage ?? usage;
}

function link(to: Partial<Address>, text: string): JSX.Element {
  return (
    <Link to={to} tabIndex={-1} title={visibleText(text)}>
      {visibleText(text)}
    </Link>
  );
}

/** The average score, or the number, of each feedback. */
export function feedbackChips(feedback: readonly FeedbackFigures[] = []): ComponentChildren {
  return feedback.slice(0, FEEDBACK_MAX).map(({ key, count: times, average_score }) => (
    <span key={key} class="chip" title={`${visibleText(key)}: ${plural(times, 'time')}`}>
      {visibleText(key)} {average_score === undefined ? times : Number(average_score.toFixed(2))}
    </span>
  ));
}

function tagsOf({ tags = [] }: Line): ComponentChildren {
  if (tags.length === 0) return undefined;
  return (
    <>
      {tags.slice(0, TAGS_MAX).map((tag) => (
        <span key={tag} class="chip">
          {visibleText(tag)}
        </span>
      ))}
      {tags.length > TAGS_MAX && <span class="note">+{tags.length - TAGS_MAX}</span>}
    </>
  );
}

type Previewed = Pick<Line, 'inputs_preview' | 'outputs_preview' | 'error' | 'outcome'> & {
  readonly status?: Line['status'];
  readonly trace?: { readonly errors: number } | undefined;
};

/** Preview of the input, and of what came of it: the output, or the error of the run or trace. */
export function previewOf(run: Previewed): JSX.Element[] {
  const input = visibleText(run.inputs_preview ?? '');
  const { text, class: name } = resultOf(run);
  const cells = [
    <span key="input" class="preview-in clip" title={input}>
      {input}
    </span>,
  ];
  if (text !== '') {
    const arrow = <span key="to">→</span>;
    const output = (
      <span key="output" class={`preview-out clip ${name}`} title={text}>
        {text}
      </span>
    );
    cells.push(arrow, output);
  }
  return cells;
}

/** Mark of the receiver before the tool calls of an answer. */
const CALLS = '→ ';

/** Colours of a text that takes the place of the output. A further outcome with an error is muted. */
const RESULT_CLASSES: Readonly<Record<string, string>> = { error: 'bad', failed_below: 'warn', interrupted: 'warn' };

function resultOf({ outputs_preview = '', error, trace, status, outcome = status }: Previewed) {
  if (error !== undefined) {
    const before = outcome === 'failed_below' && trace !== undefined ? `${trace.errors} failed below: ` : '';
    return {
      text: before + visibleText(error),
      class: outcome === undefined ? 'bad' : (RESULT_CLASSES[outcome] ?? 'note'),
    };
  }
  if (outputs_preview === '' && outcome === 'incomplete') return { text: 'incomplete', class: 'note' };
  if (outputs_preview.startsWith(CALLS))
    return { text: visibleText(outputs_preview.slice(CALLS.length)), class: 'code' };
  return { text: visibleText(outputs_preview), class: '' };
}
