import type { JSX } from 'preact';
import type { RunDetails } from '../../receiver/domain/run-view.ts';
import { api } from '../data/api.ts';
import { useLive } from '../data/live-value.ts';
import { Link } from '../elements/controls.tsx';
import { visible } from '../elements/visible-text.ts';

/** Tells where the prompt of a model call differs from the prompt of an earlier call. */
export function CacheNote({ run }: { run: RunDetails }): JSX.Element | null {
  const { id, run_type, end_time, usage } = run;
  const isRead = run_type === 'llm' && usage?.input_tokens !== undefined;
  const { value } = useLive(isRead ? `${id} ${end_time}` : undefined, (signal) => api.cache(id, signal));
  if (value?.text === undefined) return null;
  const { text, previous_run_id: base, previous_trace_id: trace } = value;
  return (
    <p class="note">
      {visible(text)} <Link to={{ trace, run: base }}>Earlier call</Link> ·{' '}
      <Link to={{ view: 'compare', base, run: id }}>Compare</Link>
    </p>
  );
}
