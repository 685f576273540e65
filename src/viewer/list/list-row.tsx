import type { JSX } from 'preact';
import { follow, linkTo } from '../data/navigation.ts';
import { ago, cost, count, duration, exact, millisecondsAt } from '../elements/figures.ts';
import { StatusMark } from '../elements/status-mark.tsx';
import { visible } from '../elements/visible-text.ts';
import type { Line } from './run-list.ts';

const TAGS_SHOWN = 3;
const NAME_MAX = 200;

/** One trace, or one run, in a line. */
export function ListRow({
  line,
  row,
  nowMs,
  isSelected,
  open,
  place,
}: {
  line: Line;
  row: number;
  nowMs: number;
  isSelected: boolean;
  open: (line: Line) => void;
  place: { trace: string; run: string | undefined };
}): JSX.Element {
  const { trace, start_time, tags = [] } = line;
  const usage = trace === undefined ? line.usage : (trace.usage ?? line.usage);
  const name = visible(line.name.slice(0, NAME_MAX));
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
      <span role="gridcell" class="line-status">
        <StatusMark status={line.status} isShort />
      </span>
      <span role="gridcell" class="line-name">
        <a href={linkTo(place)} tabIndex={-1} title={name} onClick={(event) => follow(event, place)}>
          {name}
        </a>
      </span>
      <span role="gridcell" class="preview">
        <Preview line={line} />
      </span>
      <span role="gridcell" class="number" title={`${exact(start_time)}\n${start_time}`}>
        <time dateTime={start_time}>{ago(millisecondsAt(start_time), nowMs)}</time>
      </span>
      <span role="gridcell" class="number">
        {latencyOf(line)}
      </span>
      <span role="gridcell" class="number">
        {usage?.total_tokens === undefined ? '' : count(usage.total_tokens)}
      </span>
      <span role="gridcell" class="number">
        {usage?.total_cost === undefined ? '' : cost(usage.total_cost)}
      </span>
      <span role="gridcell" class="number">
        {trace === undefined ? visible(line.run_type) : trace.runs.toLocaleString('en')}
        {trace !== undefined && trace.errors > 0 && line.status !== 'error' && (
          <span class="bad" title={`${trace.errors} of them with an error`}>
            {' '}
            {trace.errors} ✕
          </span>
        )}
      </span>
      <span role="gridcell" class="wide-only">
        {trace === undefined ? visible(line.model ?? '') : <FeedbackFigures line={line} />}
      </span>
      <span role="gridcell" class="wide-only tags">
        {tags.slice(0, TAGS_SHOWN).map((tag) => (
          <span key={tag} class="chip">
            {visible(tag)}
          </span>
        ))}
        {tags.length > TAGS_SHOWN && <span class="note">+{tags.length - TAGS_SHOWN}</span>}
      </span>
    </div>
  );
}

/** What went in and what came out; of what failed how. */
function Preview({ line }: { line: Line }): JSX.Element {
  const { inputs_preview, outputs_preview, error } = line;
  return (
    <>
      <span class="preview-in">{visible(inputs_preview ?? '')}</span>
      {error === undefined
        ? outputs_preview !== undefined && (
            <>
              <span class="arrow">→</span>
              <span class="preview-out">{visible(outputs_preview)}</span>
            </>
          )
        : error !== '' && (
            <>
              <span class="arrow">→</span>
              <span class="preview-out bad">{visible(error)}</span>
            </>
          )}
    </>
  );
}

function latencyOf({ start_time, end_time }: Line): string {
  return end_time === undefined ? '' : duration(millisecondsAt(end_time) - millisecondsAt(start_time));
}

function FeedbackFigures({ line }: { line: Line }): JSX.Element {
  return (
    <>
      {(line.trace?.feedback ?? []).slice(0, 2).map(({ key, count: times, average_score }) => (
        <span key={key} class="chip" title={`${visible(key)}: ${times} times`}>
          {visible(key)} {average_score === undefined ? times : Number(average_score.toFixed(2))}
        </span>
      ))}
    </>
  );
}
