import type { JSX } from 'preact';
import { count, duration, millisecondsAt } from '../elements/figures.ts';
import { Icon } from '../elements/icon.tsx';
import { StatusMark } from '../elements/status-mark.tsx';
import { visible } from '../elements/visible-text.ts';
import type { Branch } from './run-tree.ts';
import type { Axis } from './trace-tree.tsx';

const INDENT_PX = 14;
/** Deeper runs stand under each other: a row is to keep room for its name. */
const INDENTS_MAX = 16;
/** Characters of a name in a row; the panel has it whole. */
const NAME_MAX = 200;

/** One run: its place and its name, and when it was at work. */
export function TraceRow({
  branch,
  index,
  row,
  axis,
  isCollapsed,
  isSelected,
  isMatch,
  select,
  collapse,
}: {
  branch: Branch;
  index: number;
  /** Among the rows that are shown. */
  row: number;
  axis: Axis;
  isCollapsed: boolean;
  isSelected: boolean;
  isMatch: boolean;
  select: (run: string) => void;
  collapse: (run: string, isCollapsed: boolean) => void;
}): JSX.Element {
  const { run, depth, end, isOrphan } = branch;
  const below = end - index - 1;
  const name = visible(run.name.slice(0, NAME_MAX));
  return (
    <div
      id={`run-${run.id}`}
      class={`tree-row${isSelected ? ' selected' : ''}${isMatch ? '' : ' aside'}`}
      role="row"
      aria-rowindex={row + 1}
      aria-level={depth + 1}
      aria-expanded={below > 0 ? !isCollapsed : undefined}
      aria-selected={isSelected}
      onClick={() => select(run.id)}
    >
      <div class="tree-name" role="gridcell" style={{ paddingLeft: `${Math.min(depth, INDENTS_MAX) * INDENT_PX}px` }}>
        {below > 0 ? (
          <button
            type="button"
            class={isCollapsed ? 'fold' : 'fold open'}
            tabIndex={-1}
            aria-label={isCollapsed ? `Expand ${name}` : `Collapse ${name}`}
            onClick={(event) => {
              event.stopPropagation();
              collapse(run.id, !isCollapsed);
            }}
          >
            <Icon name="open" />
          </button>
        ) : (
          <span class="fold" />
        )}
        <span class={`type type-${TYPES.has(run.run_type) ? run.run_type : 'other'}`} title={visible(run.run_type)}>
          <Icon name={run.run_type} />
        </span>
        <span class="run-name" title={name}>
          {name}
        </span>
        {isCollapsed && <span class="note">+{below.toLocaleString('en')}</span>}
        {depth > INDENTS_MAX && <span class="note">depth {depth}</span>}
        {isOrphan && (
          <span class="note" title="Its parent has not arrived">
            orphan
          </span>
        )}
        {run.status !== 'success' && <StatusMark status={run.status} />}
        {run.usage?.total_tokens !== undefined && <span class="note">{count(run.usage.total_tokens)} tok</span>}
      </div>
      <div class="length" role="gridcell">
        {lengthOf(branch)}
      </div>
      <Lane branch={branch} axis={axis} />
    </div>
  );
}

const TYPES: ReadonlySet<string> = new Set(['chain', 'llm', 'tool', 'retriever', 'embedding', 'prompt', 'parser']);

function Lane({ branch, axis }: { branch: Branch; axis: Axis }): JSX.Element {
  const { run, startMs } = branch;
  const axisEndMs = axis.startMs + axis.lengthMs;
  const endMs = branch.endMs ?? (run.status === 'pending' ? axisEndMs : startMs);
  const share = (ms: number): number => Math.max(0, Math.min(1, ms / axis.lengthMs));
  const left = share(startMs - axis.startMs);
  const width = share(endMs - startMs);
  const firstTokenMs = run.first_token_time === undefined ? undefined : millisecondsAt(run.first_token_time) - startMs;
  return (
    <div class="lane" role="gridcell">
      <span
        class={`bar bar-${run.run_type === 'llm' ? 'llm' : 'other'} bar-${run.status}`}
        style={{ left: `${left * 100}%`, width: `${width * 100}%` }}
      />
      {firstTokenMs !== undefined && firstTokenMs >= 0 && (
        <span
          class="first-token"
          title={`First token after ${duration(firstTokenMs)}`}
          style={{ left: `${(left + share(firstTokenMs)) * 100}%` }}
        >
          <span class="unseen">First token after {duration(firstTokenMs)}</span>
        </span>
      )}
    </div>
  );
}

function lengthOf({ startMs, endMs }: Branch): string {
  return endMs === undefined ? '' : duration(endMs - startMs);
}
