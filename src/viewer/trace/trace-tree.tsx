import type { JSX } from 'preact';
import { useLayoutEffect, useRef } from 'preact/hooks';
import { sourcesOf } from '../../receiver/domain/trace/call-records.ts';
import { address } from '../data/navigation.ts';
import { Button, Toggle } from '../elements/controls.tsx';
import {
  costFigure,
  countFigure,
  durationFigure,
  latencyOf,
  millisecondsAt,
  percent,
  plural,
  usageTitle,
} from '../elements/figures.ts';
import { Icon, StatusMark } from '../elements/icon.tsx';
import { useFocus, useKeys } from '../elements/keys.ts';
import { elementIdOf, isNarrow, onRow, Rows, scrollToRow, useRowKeys, useRowWindow } from '../elements/rows.tsx';
import { visibleText } from '../elements/visible-text.ts';
import { InternalToggle } from '../run/run-facts.tsx';
import { type Axis, type Branch, innermostMessage, lengthMsOf, runKind, useAxis } from './run-tree.ts';
import type { TraceModel } from './trace-model.ts';
import { Went } from './went.tsx';

const ROW_HEIGHT = 28;
/** Height of a row on a narrow screen, where the figures and the bar are below the name. */
const ROW_HEIGHT_NARROW = 55;
const INDENT_PX = 16;
/** Maximum indentation, in percent of the name column. */
const INDENT_PERCENT_MAX = 40;
const NAME_LENGTH_MAX = 200;
/** Minimum width of a bar with a mark for the first token, in percent of the axis. The mark would hide a shorter bar. */
const MARKED_PERCENT_MIN = 4;
/** Maximum number of labels of the time axis. */
const TICKS_MAX = 5;

/** The tree and waterfall of a trace, with one row for each run. Only visible rows are in the DOM. */
export function TraceTree({ model }: { model: TraceModel }): JSX.Element {
  const element = useRef<HTMLDivElement>(null);
  const shown = model.shown.value;
  const position = model.position.value;
  const rowHeight = isNarrow.value ? ROW_HEIGHT_NARROW : ROW_HEIGHT;
  const { first, end } = useRowWindow(element, rowHeight, shown.length);
  const { branches } = model.tree.value;
  const axis = useAxis(model.tree.value);
  useFocus(element);
  useRowKeys(element, rowHeight, shown.length, position, (row) => model.selectAt(row));
  useFoldKeys(model);
  useLayoutEffect(() => scrollToRow(element.current, position, rowHeight), [model.selected.value, shown.length === 0]);
  const isVisible = position >= first && position < end;
  const step = tickStep(axis.lengthMs);
  return (
    <section
      class={address.value.run === undefined ? 'tree column' : 'tree column opened'}
      aria-label="Runs of the trace"
      style={{ '--step': (step / axis.lengthMs) * 100 }}
    >
      <div class="tree-grid tree-head">
        <span class="clip">
          <Button text="Collapse" class="more" title="Collapse all ([)" onClick={() => model.collapseAll(true)} />
          <Button text="Expand" class="more" title="Expand all (])" onClick={() => model.collapseAll(false)} />
          {model.internals.value > 0 && <InternalToggle count={model.internals.value} noun="internal step" />}
        </span>
        <span class="number">tokens</span>
        <span class="number">cost</span>
        <Ticks lengthMs={axis.lengthMs} step={step} />
      </div>
      <div
        ref={element}
        class="tree-rows scroll"
        role="treegrid"
        aria-label="Runs of the trace"
        aria-rowcount={shown.length}
        aria-activedescendant={isVisible ? elementIdOf(model.selected.value ?? '') : undefined}
        tabIndex={0}
      >
        <Rows count={shown.length} rowHeight={rowHeight} first={first} role="rowgroup">
          {shown.slice(first, end).map((index, offset) => {
            const props = { model, index, branch: branches[index] as Branch, axis };
            return <TraceRow key={index} {...props} row={first + offset + 1} />;
          })}
        </Rows>
        {shown.length === 0 && <p class="loading">No runs in this trace match.</p>}
      </div>
      <Went model={model} />
    </section>
  );
}

/** Returns the distance between two labels of the time axis: 1, 2 or 5 times a power of 10. */
function tickStep(lengthMs: number): number {
  const least = lengthMs / TICKS_MAX;
  const power = 10 ** Math.floor(Math.log10(least));
  return power * ([1, 2, 5].find((factor) => factor * power >= least) ?? 10);
}

/** Labels of the time axis. */
function Ticks({ lengthMs, step }: { lengthMs: number; step: number }): JSX.Element {
  const ticks = Array.from({ length: Math.floor(lengthMs / step) + 1 }, (_, index) => index * step);
  const labels = ticks.map(durationFigure);
  return (
    <span class="lane ticks" aria-hidden="true">
      {labels.map(
        (label, index) =>
          label !== labels[index - 1] && (
            <span key={label} style={{ '--from': ((ticks[index] ?? 0) / lengthMs) * 100 }}>
              {label}
            </span>
          ),
      )}
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

interface RowProps {
  readonly model: TraceModel;
  readonly branch: Branch;
  /** Index of the branch in the tree. */
  readonly index: number;
}

function TraceRow({ model, branch, index, row, axis }: RowProps & { row: number; axis: Axis }): JSX.Element {
  const { run, end, dollars } = branch;
  const root = model.tree.value.branches[0] ?? branch;
  const isParent = end > index + 1;
  const isSlow = model.slowest.value.has(index);
  const isSelected = run.id === model.selected.value;
  const tokens = branch.tokens || (run.usage?.total_tokens ?? 0);
  const states = { selected: isSelected, aside: !model.isMatch(run), slow: isSlow, failed: run.status === 'error' };
  return (
    <div
      id={elementIdOf(run.id)}
      class={classOf(states)}
      role="row"
      aria-rowindex={row}
      aria-level={model.depthOf(index) + 1}
      aria-expanded={isParent ? !model.isCollapsed(run.id) : undefined}
      aria-selected={isSelected}
      onClick={onRow(() => model.select(run.id))}
    >
      <RowName model={model} branch={branch} index={index} />
      <div class="number tokens" role="gridcell" title={usageTitle(run.usage)}>
        {tokens > 0 && countFigure(tokens)}
      </div>
      <div class="number" role="gridcell" title={usageTitle(run.usage)}>
        {dollars > 0 && (
          <span class="meter cost" style={{ '--of': isParent ? 0 : (dollars / (root.dollars || dollars)) * 100 }}>
            {costFigure(dollars)}
          </span>
        )}
      </div>
      <Lane branch={branch} axis={axis} whole={isSlow && !isParent && index > 0 ? root : undefined} />
    </div>
  );
}

/** The name of a run in the tree, and what is known of it: model, further records, status and error. */
function RowName({ model, branch, index }: RowProps): JSX.Element {
  const { run, end, isOrphan } = branch;
  const depth = model.depthOf(index);
  const records = model.recordsOf(run.id);
  const sources = visibleText(sourcesOf(records).slice(0, NAME_LENGTH_MAX));
  const repeats = model.repeatCounts.value.get(run.id) ?? 0;
  const status = (index === 0 ? model.outcome.value : undefined) ?? run.status;
  const isCollapsed = model.isCollapsed(run.id);
  const name = visibleText(run.name.slice(0, NAME_LENGTH_MAX));
  const percentOfColumn = (depth / Math.max(1, model.tree.value.depthMax)) * INDENT_PERCENT_MAX;
  const isUnfolded = model.unfolded.value.has(run.id);
  const toggleFolded = (): void => model.toggleFolded(run.id);
  return (
    <div class="tree-name" role="gridcell" style={{ paddingLeft: `min(${depth * INDENT_PX}px, ${percentOfColumn}%)` }}>
      {end > index + 1 ? (
        <Button
          icon="open"
          class={isCollapsed ? 'fold' : 'fold open'}
          tabIndex={-1}
          aria-label={`${isCollapsed ? 'Expand' : 'Collapse'} ${name}`}
          onClick={() => model.collapse(run.id, !isCollapsed)}
        />
      ) : (
        <span class="fold" />
      )}
      <span class={`kind kind-${runKind(run)}`} title={visibleText(run.run_type)}>
        <Icon name={run.run_type} />
      </span>
      <span class="run-name clip" title={name}>
        {name}
      </span>
      {run.model !== undefined && run.model !== run.name && (
        <span class="note model clip" title={visibleText(run.model)}>
          {visibleText(run.model)}
        </span>
      )}
      {run.derived !== undefined && <DerivedMark />}
      {isCollapsed && <span class="note">+{(end - index - 1).toLocaleString('en')}</span>}
      {records.length > 0 && (
        <Toggle
          class="more"
          isOn={isUnfolded}
          title={`Show or hide the other records of this call ${sources}`}
          text={`+${plural(records.length, 'record')}`}
          onClick={toggleFolded}
        />
      )}
      {repeats > 0 && (
        <Toggle
          class="more"
          isOn={isUnfolded}
          title={`Show or hide ${plural(repeats, 'equal run')} after this run`}
          text={`× ${(repeats + 1).toLocaleString('en')}`}
          onClick={toggleFolded}
        />
      )}
      {isOrphan && (
        <span class="note" title="The parent of this run has not arrived">
          orphan
        </span>
      )}
      {status !== 'success' && <StatusMark status={status} isShort={run.error !== undefined || index === 0} />}
      {run.error !== undefined && (
        <span class="bad clip small" title={visibleText(run.error)}>
          {visibleText(innermostMessage(run.error))}
        </span>
      )}
    </div>
  );
}

export function DerivedMark(): JSX.Element {
  return (
    <span class="derived" title="Known from the messages of two model calls, not recorded">
      from the messages
    </span>
  );
}

/** The bar of a run on the time axis, and its duration beside the bar. */
function Lane(props: { branch: Branch; axis: Axis; whole: Branch | undefined }): JSX.Element {
  const { branch, axis, whole } = props;
  const { run, startMs } = branch;
  const endMs = branch.endMs ?? (run.status === 'pending' ? Number.POSITIVE_INFINITY : startMs);
  const [left = 0, right = 0] = [percentAt(axis, startMs), percentAt(axis, endMs)].toSorted((a, b) => a - b);
  const firstTokenAt = run.first_token_time === undefined ? Number.NaN : millisecondsAt(run.first_token_time);
  const label = `First token after ${durationFigure(firstTokenAt - startMs)}`;
  return (
    <>
      <div class="lane" role="gridcell">
        <span
          class={`bar kind-${runKind(run)} bar-${run.derived === undefined ? run.status : 'derived'}`}
          style={{ '--from': left, '--for': right - left }}
        />
        {right - left >= MARKED_PERCENT_MIN && firstTokenAt >= startMs && (
          <span class="first-token" title={label} style={{ '--from': percentAt(axis, firstTokenAt) }}>
            <span class="unseen">{label}</span>
          </span>
        )}
      </div>
      <div class="length small" role="gridcell" style={{ '--to': right }}>
        {run.derived !== undefined && '≤ '}
        {latencyOf(run, axis.nowMs)}
        {whole !== undefined && ` · ${percent(lengthMsOf(branch), lengthMsOf(whole))}`}
      </div>
    </>
  );
}

/** Returns the position of a time on an axis, in percent. A time outside of the axis has the position of its closer end. */
function percentAt({ startMs, lengthMs }: Axis, ms: number): number {
  return Math.max(0, Math.min(100, ((ms - startMs) / lengthMs) * 100));
}

function classOf(states: Readonly<Record<string, boolean>>): string {
  return ['tree-grid tree-row', ...Object.keys(states).filter((state) => states[state])].join(' ');
}
