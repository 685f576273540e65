import { type Signal, signal } from '@preact/signals';
import type { JSX } from 'preact';
import { beginningOf, visible } from './text.tsx';

/** Maximum number of characters to announce. The user can read the rest of a long answer in the conversation. */
const CHARS_MAX = 600;

const announcement: Signal<string> = signal('');

/** Announces a text to screen readers. */
export function announce(text: string): void {
  announcement.value = visible(beginningOf(text, CHARS_MAX));
}

/**
 * The live region for screen readers. The conversation itself is not a live region, because a screen reader would then
 * read each word as it streams.
 */
export function Announcer(): JSX.Element {
  return (
    <p class="unseen" role="status" aria-live="polite">
      {announcement.value}
    </p>
  );
}
