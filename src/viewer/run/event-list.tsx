import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import type { RunDetails } from '../../receiver/store/run-view.ts';
import { useLoaded } from '../data/live-value.ts';
import { payload, payloadKey } from '../data/payloads.ts';
import { bytes, duration, millisecondsAt } from '../elements/figures.ts';
import { visible } from '../elements/visible-text.ts';
import { JsonTree } from '../payload/json-tree.tsx';
import { fieldsOf, listOf, textOf } from '../payload/message.ts';

const PAGE = 50;

/** What happened within a run, fetched when it is opened. */
export function EventList({ run }: { run: RunDetails }): JSX.Element | null {
  const size = run.payload_sizes.events;
  const [isOpen, setOpen] = useState(false);
  if (size === undefined) return null;
  return (
    <details class="section" onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>
        Events <span class="note">{bytes(size)}</span>
      </summary>
      {isOpen && <Events run={run} />}
    </details>
  );
}

function Events({ run }: { run: RunDetails }): JSX.Element {
  const [count, setCount] = useState(PAGE);
  const { value, problem } = useLoaded(payloadKey(run, 'events'), (signal) => payload(run, 'events', signal));
  if (value === undefined) return <p class={problem === undefined ? 'loading' : 'problem'}>{problem ?? 'Loading…'}</p>;
  const events = listOf(value);
  const startMs = millisecondsAt(run.start_time);
  return (
    <ol class="events">
      {events.slice(0, count).map((one, index) => {
        const { name, time, kwargs, ...rest } = fieldsOf(one);
        const told = kwargs ?? (Object.keys(rest).length > 0 ? rest : undefined);
        const at = textOf(time);
        return (
          <li key={index}>
            <span class="note">{at === undefined ? '' : `+${duration(millisecondsAt(at) - startMs)}`}</span>{' '}
            <strong>{visible(`${name ?? 'event'}`)}</strong>
            {told !== undefined && <JsonTree value={told} path={`$.events[${index}].kwargs`} />}
          </li>
        );
      })}
      {events.length > count && (
        <li>
          <button type="button" class="more" onClick={() => setCount(count + PAGE)}>
            show more of {events.length.toLocaleString('en')}
          </button>
        </li>
      )}
    </ol>
  );
}
