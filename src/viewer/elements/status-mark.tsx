import type { JSX } from 'preact';
import type { RunStatus } from '../../receiver/store/run-view.ts';
import { Icon } from './icon.tsx';

/** How a run stands, by an icon and a word; where there is little room the word of one that went well is only read aloud. */
export function StatusMark({ status, isShort = false }: { status: RunStatus; isShort?: boolean }): JSX.Element {
  return (
    <span class={`status status-${status}`} title={ABOUT[status]}>
      <Icon name={status} />
      <span class={isShort && status === 'success' ? 'unseen' : ''}>{status}</span>
    </span>
  );
}

const ABOUT: Readonly<Record<RunStatus, string>> = {
  success: 'Ended without an error',
  error: 'Ended with an error',
  pending: 'Has not ended yet',
  cancelled: 'The caller gave it up',
  interrupted: 'Its program ended before it did',
  incomplete: 'Given up by its exporter while it was open; it may go on',
};
