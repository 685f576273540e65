import type { JSX } from 'preact';
import type { CallOutcome } from './conversation.ts';
import { Icon } from './icon.tsx';

export type Status = 'running' | CallOutcome | 'waiting' | 'stopped';

const WORDS: Readonly<Record<Status, string>> = {
  running: 'working',
  complete: 'done',
  failed: 'failed',
  declined: 'declined',
  waiting: 'waiting for you',
  stopped: 'stopped',
};

/** How something is doing: an icon and a word, and a colour besides. */
export function StatusMark({ status }: { status: Status }): JSX.Element {
  return (
    <span class={`status status-${status}`}>
      <Icon name={status} />
      {WORDS[status]}
    </span>
  );
}
