import type { JSX } from 'preact';
import { useMemo, useState } from 'preact/hooks';
import { type Axis, type Kind, kindOf, type RunTree, shareOf, type Zoom } from './run-tree.ts';
import type { TraceModel } from './trace-model.ts';

/** Minimum length of a zoomed range, as a share of the trace. A shorter drag counts as a click. */
const SHARE_MIN = 0.003;
/** Minimum length of a bar, as a share of the trace. */
const BAR_MIN = 0.002;
/** Length of the bar of a pending run, in milliseconds. The bar ends outside of the map. */
const FAR_MS = 1e10;

/** A strip that shows the whole trace. Dragging selects the time range of the waterfall. */
export function Minimap({ model, axis }: { model: TraceModel; axis: Axis }): JSX.Element {
  const tree = model.tree.value;
  const paths = useMemo(() => pathsOf(tree), [tree]);
  const [dragged, setDragged] = useState<Zoom>();
  const range = dragged ?? model.zoom.value;
  const share = range && shareOf(axis, range.startMs, range.endMs);
  const timeAt = ({ currentTarget, clientX }: { currentTarget: Element; clientX: number }): number => {
    const { left, width } = currentTarget.getBoundingClientRect();
    return axis.startMs + Math.max(0, Math.min(1, (clientX - left) / width)) * axis.lengthMs;
  };
  const zoom = (): void => {
    if (dragged === undefined) return;
    const [startMs = 0, endMs = 0] = [dragged.startMs, dragged.endMs].toSorted((a, b) => a - b);
    if (endMs - startMs > axis.lengthMs * SHARE_MIN) model.zoom.value = { startMs, endMs };
    setDragged(undefined);
  };
  return (
    <div
      class="minimap"
      title="Drag to zoom in, double-click to show the whole trace"
      aria-hidden="true"
      onPointerDown={(event) => {
        event.currentTarget.setPointerCapture(event.pointerId);
        setDragged({ startMs: timeAt(event), endMs: timeAt(event) });
      }}
      onPointerMove={(event) => dragged && setDragged({ ...dragged, endMs: timeAt(event) })}
      onPointerUp={zoom}
      onPointerCancel={() => setDragged(undefined)}
      onDblClick={() => {
        model.zoom.value = undefined;
      }}
    >
      <svg viewBox={`0 0 ${axis.lengthMs} ${tree.branches.length}`} preserveAspectRatio="none" aria-hidden="true">
        {Object.entries(paths).map(([kind, path]) => (
          <path key={kind} class={`minimap-${kind}`} d={path} />
        ))}
      </svg>
      {share !== undefined && <span style={{ left: `${share.left}%`, width: `${share.width}%` }} />}
    </div>
  );
}

/** Returns an SVG path for each kind of run, with a line for each run. A few paths are drawn faster than many elements. */
function pathsOf({ branches, startMs, endMs }: RunTree): Record<Kind | 'error', string> {
  const lines = { other: '', model: '', tool: '', error: '' };
  for (const [index, { run, ...branch }] of branches.entries()) {
    const kind = run.status === 'error' ? 'error' : kindOf(run);
    const lengthMs = run.status === 'pending' ? FAR_MS : (branch.endMs ?? branch.startMs) - branch.startMs;
    lines[kind] += `M${branch.startMs - startMs} ${index + 0.5}h${Math.max(lengthMs, (endMs - startMs) * BAR_MIN)}`;
  }
  return lines;
}
