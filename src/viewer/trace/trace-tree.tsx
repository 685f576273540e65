import type { ComponentChildren, JSX } from 'preact';
import { useLayoutEffect, useRef } from 'preact/hooks';
import { sourcesOf } from '../../receiver/domain/call-records.ts';
import { address } from '../data/navigation.ts';
import { count, duration, latencyOf, millisecondsAt, plural, usageTitle } from '../elements/figures.ts';
import { Icon, StatusMark } from '../elements/icon.tsx';
import { useFocus, useKeys } from '../elements/keys.ts';
import { Rows, scrollToRow, useRowKeys, useRowWindow } from '../elements/rows.tsx';
import { visible } from '../elements/visible-text.ts';
import { InternalToggle } from '../run/run-facts.tsx';
import { Minimap } from './minimap.tsx';
import { type Axis, type Branch, shareOf, useAxis, type Zoom } from './run-tree.ts';
import type { TraceModel } from './trace-model.ts';

const ROW_HEIGHT = 26;
const INDENT_PX = 14;
/** Maximum indentation, in percent of the name column. */
const INDENT_PERCENT_MAX = 40;
const NAME_LENGTH_MAX = 200;
/** Minimum number of runs for which the minimap is shown. Fewer runs fit on the screen. */
const MINIMAP_RUNS_MIN = 30;
/** Minimum width of a bar with a mark for the first token, in percent of the axis. The mark would hide a shorter bar. */
const MARKED_PERCENT_MIN = 4;

/** The tree and waterfall of a trace, with one row for each run. Only visible rows are in the DOM. */
export function TraceTree({ model }: { model: TraceModel }): JSX.Element {
  const element = useRef<HTMLDivElement>(null);
  const shown = model.shown.value;
  const position = model.position.value;
  const { first, end } = useRowWindow(element, ROW_HEIGHT, shown.length);
  const { branches, startMs } = model.tree.value;
  const whole = useAxis(model.tree.value);
  const zoom = model.zoom.value;
  const axis = zoom === undefined ? whole : { ...whole, startMs: zoom.startMs, lengthMs: lengthOf(zoom) };
  useFocus(element);
  useRowKeys(element, ROW_HEIGHT, shown.length, position, (row) => model.selectAt(row));
  useFoldKeys(model);
  useLayoutEffect(() => scrollToRow(element.current, position, ROW_HEIGHT), [model.selected.value, shown.length === 0]);
  useLayoutEffect(() => {
    const row = zoom === undefined ? -1 : shown.findIndex((index) => (branches[index]?.startMs ?? 0) >= zoom.startMs);
    if (row !== -1) element.current?.scrollTo({ top: row * ROW_HEIGHT });
  }, [zoom]);
  const isVisible = position >= first && position < end;
  return (
    <section
      class={address.value.run === undefined ? 'tree column' : 'tree column opened'}
      aria-label="Runs of the trace"
    >
      {(branches.length >= MINIMAP_RUNS_MIN || zoom !== undefined) && <Minimap model={model} axis={whole} />}
      <div class="tree-grid tree-head">
        <span class="clip">
          <button type="button" class="more" title="Collapse all ([)" onClick={() => model.collapseAll(true)}>
            Collapse
          </button>
          <button type="button" class="more" title="Expand all (])" onClick={() => model.collapseAll(false)}>
            Expand
          </button>
          {zoom !== undefined && (
            <button type="button" class="more" title="Show the whole trace (z)" onClick={() => model.toggleZoom()}>
              Whole trace
            </button>
          )}
          {model.internals.value > 0 && (
            <InternalToggle class="more" count={model.internals.value} noun="internal step" />
          )}
        </span>
        <span />
        <Ticks offsetMs={axis.startMs - startMs} lengthMs={axis.lengthMs} />
      </div>
      <div
        ref={element}
        class="tree-rows scroll"
        role="treegrid"
        aria-label="Runs of the trace"
        aria-rowcount={shown.length}
        aria-activedescendant={isVisible ? `run-${model.selected.value}` : undefined}
        tabIndex={0}
      >
        <Rows count={shown.length} rowHeight={ROW_HEIGHT} first={first} role="rowgroup">
          {shown.slice(first, end).map((index, offset) => (
            <TraceRow key={index} model={model} index={index} row={first + offset + 1} axis={axis} />
          ))}
        </Rows>
        {shown.length === 0 && <p class="loading">No runs in this trace match.</p>}
      </div>
    </section>
  );
}

function lengthOf({ startMs, endMs }: Zoom): number {
  return Math.max(0.001, endMs - startMs);
}

/** Labels of the time axis. In a zoomed range, the first label is the time since the start of the trace. */
function Ticks({ offsetMs, lengthMs }: { offsetMs: number; lengthMs: number }): JSX.Element {
  const sign = offsetMs === 0 ? '' : '+';
  const [middle, end] = [duration(lengthMs / 2), duration(lengthMs)];
  return (
    <span class="ticks" aria-hidden="true">
      <span>{duration(offsetMs)}</span>
      {middle !== duration(0) && <span class="tick-middle">{sign + middle}</span>}
      {end !== duration(0) && <span class="tick-end">{sign + end}</span>}
    </span>
  );
}

function useFoldKeys(model: TraceModel): void {
  const position = model.position.value;
  const { branches } = model.tree.value;
  const index = model.shown.value[position] ?? -1;
  const branch = branches[index];
  const isParent = branch !== undefined && branch.end > index + 1;
  const isCollapsed = branch !== undefined && model.isCollapsed(branch.run.id);
  const expand = (): void => {
    if (branch !== undefined && isCollapsed) model.collapse(branch.run.id, false);
    else if (isParent) model.selectAt(position + 1);
  };
  const collapse = (): void => {
    if (isParent && !isCollapsed) model.collapse(branch.run.id, true);
    else model.select(branches[branch?.parent ?? -1]?.run.id);
  };
  useKeys({ l: expand, ArrowRight: expand, h: collapse, ArrowLeft: collapse });
}

function TraceRow(props: { model: TraceModel; index: number; row: number; axis: Axis }): JSX.Element | null {
  const { model, index, row, axis } = props;
  const { branches, depthMax } = model.tree.value;
  const branch = branches[index];
  if (branch === undefined) return null;
  const { run, end, isOrphan } = branch;
  const depth = model.depthOf(index);
  const records = model.recordsOf(run.id);
  const sources = visible(sourcesOf(records).slice(0, NAME_LENGTH_MAX));
  const repeats = model.repeatCounts.value.get(run.id) ?? 0;
  const isParent = end > index + 1;
  const isCollapsed = model.isCollapsed(run.id);
  const isSelected = run.id === model.selected.value;
  const name = visible(run.name.slice(0, NAME_LENGTH_MAX));
  const indent = `min(${depth * INDENT_PX}px, ${(depth / Math.max(1, depthMax)) * INDENT_PERCENT_MAX}%)`;
  const toggle = (event: MouseEvent): void => {
    event.stopPropagation();
    model.collapse(run.id, !isCollapsed);
  };
  return (
    <div
      id={`run-${run.id}`}
      class={`tree-grid tree-row${isSelected ? ' selected' : ''}${model.isMatch(run) ? '' : ' aside'}`}
      role="row"
      aria-rowindex={row}
      aria-level={depth + 1}
      aria-expanded={isParent ? !isCollapsed : undefined}
      aria-selected={isSelected}
      onClick={() => model.select(run.id)}
    >
      <div class="tree-name" role="gridcell" style={{ paddingLeft: indent }}>
        {isParent ? (
          <button
            type="button"
            class={isCollapsed ? 'fold' : 'fold open'}
            tabIndex={-1}
            aria-label={`${isCollapsed ? 'Expand' : 'Collapse'} ${name}`}
            onClick={toggle}
          >
            <Icon name="open" />
          </button>
        ) : (
          <span class="fold" />
        )}
        <span class={run.run_type === 'llm' ? 'accent' : 'note'} title={visible(run.run_type)}>
          <Icon name={run.run_type} />
        </span>
        <span class="run-name clip" title={name}>
          {name}
        </span>
        {isCollapsed && <span class="note">+{(end - index - 1).toLocaleString('en')}</span>}
        {records.length > 0 && (
          <FoldButton model={model} id={run.id} title={`Show or hide the other records of this call ${sources}`}>
            +{plural(records.length, 'record')}
          </FoldButton>
        )}
        {repeats > 0 && (
          <FoldButton model={model} id={run.id} title={`Show or hide ${plural(repeats, 'equal run')} after this run`}>
            × {(repeats + 1).toLocaleString('en')}
          </FoldButton>
        )}
        {isOrphan && (
          <span class="note" title="The parent of this run has not arrived">
            orphan
          </span>
        )}
        {run.status !== 'success' && <StatusMark status={run.status} />}
        {run.usage?.total_tokens !== undefined && (
          <span class="note tokens" title={usageTitle(run.usage)}>
            {count(run.usage.total_tokens)} tok
          </span>
        )}
      </div>
      <div class="length number small" role="gridcell">
        {latencyOf(run, axis.nowMs)}
      </div>
      <Lane branch={branch} axis={axis} />
    </div>
  );
}

/** A button that shows or hides the runs that are folded into a run. */
function FoldButton(props: { model: TraceModel; id: string; title: string; children: ComponentChildren }): JSX.Element {
  const { model, id, title, children } = props;
  const toggle = (event: MouseEvent): void => {
    event.stopPropagation();
    model.toggleFolded(id);
  };
  return (
    <button type="button" class="more" aria-pressed={model.unfolded.value.has(id)} title={title} onClick={toggle}>
      {children}
    </button>
  );
}

function Lane({ branch, axis }: { branch: Branch; axis: Axis }): JSX.Element {
  const { run, startMs } = branch;
  const endMs = branch.endMs ?? (run.status === 'pending' ? Number.POSITIVE_INFINITY : startMs);
  const { left, width } = shareOf(axis, startMs, endMs) ?? { left: 0, width: -1 };
  const firstTokenAt = run.first_token_time === undefined ? Number.NaN : millisecondsAt(run.first_token_time);
  const mark = width < MARKED_PERCENT_MIN ? undefined : shareOf(axis, firstTokenAt, firstTokenAt);
  const label = `First token after ${duration(firstTokenAt - startMs)}`;
  return (
    <div class="lane" role="gridcell">
      {width >= 0 && (
        <span
          class={`bar ${run.run_type === 'llm' ? 'bar-llm' : ''} bar-${run.status}`}
          style={{ left: `${left}%`, width: `${width}%` }}
        />
      )}
      {mark !== undefined && firstTokenAt >= startMs && (
        <span class="first-token" title={label} style={{ left: `${mark.left}%` }}>
          <span class="unseen">{label}</span>
        </span>
      )}
    </div>
  );
}
