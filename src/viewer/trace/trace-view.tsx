import './trace.css';
import '../run/run.css';
import '../payload/payload.css';
import type { JSX } from 'preact';
import { useEffect, useLayoutEffect, useMemo, useRef } from 'preact/hooks';
import { address, go } from '../data/navigation.ts';
import { split, toggle } from '../data/preferences.ts';
import { Button, Pending, Problem } from '../elements/controls.tsx';
import { useKeys } from '../elements/keys.ts';
import { DerivedPanel } from '../run/derived-panel.tsx';
import { RunPanel } from '../run/run-panel.tsx';
import { useHitMarks } from './hit-marks.ts';
import { TraceBar } from './trace-bar.tsx';
import { TraceModel } from './trace-model.ts';
import { TraceTree } from './trace-tree.tsx';

export default function TraceView({ id }: { id: string }): JSX.Element {
  const model = useMemo(() => new TraceModel(id), [id]);
  useEffect(() => () => model.close(), [model]);
  const body = useRef<HTMLDivElement>(null);
  const isLoaded = model.tree.value.branches.length > 0;
  useHitMarks(body, isLoaded ? model.search.value : '');
  useKeys({
    Escape: closeTrace,
    e: () => toggle(model.isErrorsOnly),
    n: () => model.selectNextError(),
    '[': () => model.collapseAll(true),
    ']': () => model.collapseAll(false),
    Enter: () => model.panel.current?.focus(),
  });
  const problem = model.content.problem.value;
  const selected = model.selected.value;
  const tool = model.outlineOf(selected ?? '')?.derived;
  if (model.content.value.value === undefined && problem === undefined) return <Pending note="Loading the trace…" />;
  if (!isLoaded) return <MissingTrace problem={problem} />;
  return (
    <>
      <TraceBar model={model} />
      <Problem text={problem} />
      <Jump model={model} />
      <div ref={body} class="trace-body">
        <TraceTree model={model} />
        <Splitter />
        {selected !== undefined &&
          (tool === undefined ? (
            <RunPanel key={selected} id={selected} model={model} />
          ) : (
            <DerivedPanel key={selected} tool={tool} />
          ))}
      </div>
    </>
  );
}

/** Buttons between the tree and the panel of a run, of which a narrow screen shows one. */
function Jump({ model }: { model: TraceModel }): JSX.Element {
  const { run } = address.value;
  const failed = model.failed.value?.id;
  const places = [
    { name: 'Steps', id: undefined, isHere: run === undefined },
    { name: 'Conversation', id: model.tree.value.branches[0]?.run.id },
    { name: 'The failure', id: failed },
  ].filter(({ name, id }) => id !== undefined || name === 'Steps');
  return (
    <nav class="line jump narrow-only" aria-label="Parts of the trace">
      {places.map(({ name, id, isHere = run === id }) => (
        <Button
          key={name}
          text={name}
          class="button quiet"
          aria-current={isHere ? 'page' : undefined}
          onClick={() => go({ run: id })}
        />
      ))}
    </nav>
  );
}

function closeTrace(): void {
  go({ trace: undefined });
}

function MissingTrace({ problem }: { problem: string | undefined }): JSX.Element {
  return (
    <div class="empty">
      <h2>{problem ?? 'Trace not found'}</h2>
      {problem === undefined && <p>This trace has not arrived or was deleted.</p>}
      <Button text="Back to the list" onClick={closeTrace} />
    </div>
  );
}

/** Minimum and maximum width of the tree, and change per key press, in percent. */
const SPLIT_MIN = 20;
const SPLIT_MAX = 80;
const SPLIT_STEP = 4;

/** Movable divider between the tree and the panel. */
function Splitter(): JSX.Element {
  const percent = split.value;
  useLayoutEffect(() => {
    document.documentElement.style.setProperty('--split', `${percent}%`);
  }, [percent]);
  const move = (to: number): void => {
    split.value = Math.max(SPLIT_MIN, Math.min(SPLIT_MAX, to));
  };
  return (
    <div
      class="splitter"
      role="separator"
      aria-orientation="vertical"
      aria-label="Width of the tree"
      aria-valuenow={Math.round(percent)}
      aria-valuemin={SPLIT_MIN}
      aria-valuemax={SPLIT_MAX}
      tabIndex={0}
      data-own-arrows
      onKeyDown={({ key }) => {
        if (key === 'ArrowLeft') move(percent - SPLIT_STEP);
        if (key === 'ArrowRight') move(percent + SPLIT_STEP);
      }}
      onPointerDown={(event) => event.currentTarget.setPointerCapture(event.pointerId)}
      onPointerMove={(event) => {
        if (event.currentTarget.hasPointerCapture(event.pointerId)) move((event.clientX / innerWidth) * 100);
      }}
    />
  );
}
