import type { ComponentChildren, JSX } from 'preact';
import type { Address } from '../data/address.ts';
import { Link } from '../elements/controls.tsx';
import { ago, cost, count, exact, latencyOf, millisecondsAt, plural } from '../elements/figures.ts';
import { StatusMark } from '../elements/icon.tsx';
import { visible } from '../elements/visible-text.ts';
import type { Line } from './run-list.ts';

const TAGS_MAX = 3;
const FEEDBACK_MAX = 2;
const NAME_LENGTH_MAX = 200;

export function ListRow({
  line,
  row,
  nowMs,
  isSelected,
  open,
  to,
}: {
  line: Line;
  row: number;
  nowMs: number;
  isSelected: boolean;
  open: (line: Line) => void;
  to: Partial<Address>;
}): JSX.Element {
  const { trace, start_time, tags = [] } = line;
  const { total_tokens, total_cost } = (trace?.usage ?? line.usage) || {};
  const name = visible(line.name.slice(0, NAME_LENGTH_MAX));
  return (
    <div
      id={`line-${line.id}`}
      class={isSelected ? 'list-row selected' : 'list-row'}
      role="row"
      aria-rowindex={row}
      aria-selected={isSelected}
      onClick={(event) => {
        if (!(event.target instanceof Element) || event.target.closest('a') === null) open(line);
      }}
    >
      <Cell>
        <StatusMark status={line.status} isShort />
      </Cell>
      <Cell class="line-name">
        <Link to={to} tabIndex={-1} title={name}>
          {name}
        </Link>
      </Cell>
      <Cell class="preview">
        <Preview line={line} />
      </Cell>
      <Cell class="number" title={`${exact(start_time)}\n${start_time}`}>
        <time dateTime={start_time}>{ago(millisecondsAt(start_time), nowMs)}</time>
      </Cell>
      <Cell class="number">{latencyOf(line, nowMs)}</Cell>
      <Cell class="number">{total_tokens !== undefined && count(total_tokens)}</Cell>
      <Cell class="number">{total_cost !== undefined && cost(total_cost)}</Cell>
      <Cell class="number">
        {trace === undefined ? visible(line.run_type) : trace.runs.toLocaleString('en')}
        {trace !== undefined && trace.errors > 0 && line.status !== 'error' && (
          <span class="bad" title={plural(trace.errors, 'failed run')}>
            {' '}
            {trace.errors} ✕
          </span>
        )}
      </Cell>
      <Cell>
        {visible((trace === undefined && line.model) || '')}
        {trace?.feedback?.slice(0, FEEDBACK_MAX).map(({ key, count: times, average_score }) => (
          <span key={key} class="chip" title={`${visible(key)}: ${plural(times, 'time')}`}>
            {visible(key)} {average_score === undefined ? times : Number(average_score.toFixed(2))}
          </span>
        ))}
      </Cell>
      <Cell>
        {tags.slice(0, TAGS_MAX).map((tag) => (
          <span key={tag} class="chip">
            {visible(tag)}
          </span>
        ))}
        {tags.length > TAGS_MAX && <span class="note">+{tags.length - TAGS_MAX}</span>}
      </Cell>
    </div>
  );
}

function Cell(props: { class?: string; title?: string; children: ComponentChildren }): JSX.Element {
  return <span role="gridcell" {...props} />;
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
