import type { JSX } from 'preact';
import { sets } from '../data/api.ts';
import { Button } from '../elements/controls.tsx';
import type { KeyMap } from '../elements/keys.ts';
import { visibleText } from '../elements/visible-text.ts';
import { AddToSet } from '../sets/add-to-set.tsx';
import type { Column, ListKind } from './columns.tsx';
import type { Line, RunList } from './run-list.ts';

/** Column with a checkbox for each row. The key `x` reaches the checkboxes, as Enter reaches the links of the rows. */
export function pickColumn(list: RunList): Column {
  const cell = (line: Line): JSX.Element => (
    <input
      type="checkbox"
      tabIndex={-1}
      aria-label={`Select ${visibleText(line.name)}`}
      checked={list.picked.value?.has(idOf(line)) ?? false}
      onChange={() => toggle(list, line)}
    />
  );
  return { id: 'pick', name: 'Selected', head: <span class="unseen">Selected</span>, cell };
}

/** Keys that pick the row under the cursor, and end the picking. */
export function pickKeys(list: RunList, line: Line | undefined): KeyMap {
  return {
    x: sets.value && line && (() => toggle(list, line)),
    Escape: list.picked.value && (() => pick(list, undefined)),
  };
}

/** Controls in the foot of a list that pick rows and add them to a set. */
export function PickBar({ view, list }: { view: ListKind; list: RunList }): JSX.Element | null {
  if (sets.value === undefined) return null;
  if (list.picked.value === undefined)
    return <Button text="Select" class="more" title="Select rows (x)" onClick={() => pick(list, [])} />;
  const ids = [...list.picked.value];
  return (
    <>
      <strong role="status">{ids.length.toLocaleString('en')} selected</strong>
      <Button text="Select all loaded" class="more" onClick={() => pick(list, list.lines.value.map(idOf))} />
      {ids.length > 0 && (
        <AddToSet name="Add to set" examples={view === 'traces' ? { trace_ids: ids } : { run_ids: ids }} />
      )}
      <Button text="Done" class="more" onClick={() => pick(list, undefined)} />
    </>
  );
}

/** The row of a trace stands for the trace, whose id may differ from that of its root. */
function idOf({ trace, trace_id, id }: Line): string {
  return trace === undefined ? id : trace_id;
}

function toggle(list: RunList, line: Line): void {
  const ids = new Set(list.picked.value);
  if (!ids.delete(idOf(line))) ids.add(idOf(line));
  pick(list, ids);
}

function pick(list: RunList, ids: Iterable<string> | undefined): void {
  list.picked.value = ids && new Set(ids);
}
