import type { JSX } from 'preact';
import { useLayoutEffect, useRef } from 'preact/hooks';
import type { RunOutline } from '../../receiver/store/run-view.ts';
import { duration } from '../elements/figures.ts';
import { useKeys } from '../elements/keys.ts';
import { scrollTopFor } from '../elements/rows.tsx';
import { useFocus } from '../elements/use-focus.ts';
import { useNow } from '../elements/use-now.ts';
import { useRowWindow } from '../elements/use-row-window.ts';
import type { Branch, RunTree } from './run-tree.ts';
import { TraceRow } from './trace-row.tsx';

const ROW_HEIGHT = 26;
/** Runs that are open grow until nothing has been heard of their trace for so long. */
const QUIET_MS = 600_000;
const TICK_MS = 250;

/** The time that the bars stand on. */
export interface Axis {
  readonly startMs: number;
  readonly lengthMs: number;
}

/** Tree and waterfall in one: a row for each run, of which those in sight are in the document. */
export function TraceTree({
  tree,
  shown,
  collapsed,
  matches,
  selected,
  select,
  collapse,
  collapseAll,
  isOpened,
}: {
  tree: RunTree;
  /** Indices of branches. */
  shown: readonly number[];
  collapsed: ReadonlySet<string>;
  matches: ((run: RunOutline) => boolean) | undefined;
  selected: string | undefined;
  select: (run: string | undefined) => void;
  collapse: (run: string, isCollapsed: boolean) => void;
  collapseAll: (isCollapsed: boolean) => void;
  /** Whether a run has been chosen, not only taken because it is the first. */
  isOpened: boolean;
}): JSX.Element {
  const element = useRef<HTMLDivElement>(null);
  const { first, end } = useRowWindow(element, ROW_HEIGHT, shown.length);
  const axis = useAxis(tree);
  useFocus(element);
  const position = positionOf(tree, shown, selected);
  useSteps({
    tree,
    shown,
    position,
    collapsed,
    select,
    collapse,
    rows: () => (element.current?.clientHeight ?? 0) / ROW_HEIGHT,
  });
  useLayoutEffect(() => {
    const scrolled = element.current;
    if (scrolled === null || position === -1) return;
    scrolled.scrollTop = scrollTopFor(position, scrolled.scrollTop, scrolled.clientHeight, ROW_HEIGHT);
  }, [selected, shown.length === 0]);

  return (
    <section class={isOpened ? 'tree opened' : 'tree'} aria-label="Runs of the trace">
      <div class="tree-head">
        <span>
          <button type="button" class="more" title="Collapse all ([)" onClick={() => collapseAll(true)}>
            Collapse
          </button>
          <button type="button" class="more" title="Expand all (])" onClick={() => collapseAll(false)}>
            Expand
          </button>
        </span>
        <span />
        <Ticks lengthMs={axis.lengthMs} />
      </div>
      <div
        ref={element}
        class="tree-rows"
        role="treegrid"
        aria-label="Runs of the trace"
        aria-rowcount={shown.length}
        aria-activedescendant={position >= first && position < end ? `run-${selected}` : undefined}
        tabIndex={0}
      >
        <div class="rows-space" style={{ height: `${shown.length * ROW_HEIGHT}px` }} role="presentation">
          <div class="rows-in-sight" style={{ transform: `translateY(${first * ROW_HEIGHT}px)` }} role="rowgroup">
            {shown.slice(first, end).map((index, offset) => {
              const branch = tree.branches[index] as Branch;
              return (
                <TraceRow
                  key={branch.run.id}
                  branch={branch}
                  index={index}
                  row={first + offset}
                  axis={axis}
                  isCollapsed={collapsed.has(branch.run.id)}
                  isSelected={branch.run.id === selected}
                  isMatch={matches?.(branch.run) ?? true}
                  select={select}
                  collapse={collapse}
                />
              );
            })}
          </div>
        </div>
        {shown.length === 0 && <p class="loading">No run of this trace matches.</p>}
      </div>
    </section>
  );
}

/** From the first start to the last end, or to now while runs are open. */
function useAxis({ branches, startMs, endMs }: RunTree): Axis {
  const hasOpen = branches.some(({ run }) => run.status === 'pending');
  const nowMs = useNow(hasOpen, TICK_MS);
  const isGoing = hasOpen && nowMs > endMs && nowMs - endMs < QUIET_MS;
  return { startMs, lengthMs: Math.max(0.001, (isGoing ? nowMs : endMs) - startMs) };
}

function positionOf(tree: RunTree, shown: readonly number[], selected: string | undefined): number {
  const index = selected === undefined ? undefined : tree.indexOf.get(selected);
  if (index === undefined) return -1;
  let low = 0;
  let high = shown.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((shown[middle] as number) < index) low = middle + 1;
    else high = middle;
  }
  return shown[low] === index ? low : -1;
}

function useSteps({
  tree,
  shown,
  position,
  collapsed,
  select,
  collapse,
  rows,
}: {
  tree: RunTree;
  shown: readonly number[];
  position: number;
  collapsed: ReadonlySet<string>;
  select: (run: string | undefined) => void;
  collapse: (run: string, isCollapsed: boolean) => void;
  rows: () => number;
}): void {
  const at = (row: number): string | undefined => {
    const index = shown[Math.max(0, Math.min(shown.length - 1, row))];
    return index === undefined ? undefined : tree.branches[index]?.run.id;
  };
  const step = (by: number) => (): void => select(at(position + by));
  const page = (direction: number) => (): void =>
    select(at(position + direction * Math.max(1, Math.floor(rows()) - 1)));
  const index = shown[position] ?? -1;
  const branch = tree.branches[index];
  const inward = (): void => {
    if (branch === undefined) return;
    if (collapsed.has(branch.run.id)) collapse(branch.run.id, false);
    else if (branch.end > index + 1) select(at(position + 1));
  };
  const outward = (): void => {
    if (branch === undefined) return;
    if (branch.end > index + 1 && !collapsed.has(branch.run.id)) collapse(branch.run.id, true);
    else select(tree.branches[branch.parent]?.run.id);
  };
  useKeys({
    j: step(1),
    ArrowDown: step(1),
    k: step(-1),
    ArrowUp: step(-1),
    l: inward,
    ArrowRight: inward,
    h: outward,
    ArrowLeft: outward,
    PageDown: page(1),
    PageUp: page(-1),
    Home: () => select(at(0)),
    End: () => select(at(shown.length - 1)),
  });
}

function Ticks({ lengthMs }: { lengthMs: number }): JSX.Element {
  return (
    <span class="ticks" aria-hidden="true">
      {[0, 0.25, 0.5, 0.75].map((share) => (
        <span key={share} style={{ left: `${share * 100}%` }}>
          {duration(lengthMs * share)}
        </span>
      ))}
    </span>
  );
}
