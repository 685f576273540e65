import { type Signal, signal } from '@preact/signals';
import type { JSX } from 'preact';
import { beginningOf, visible } from './text.tsx';

/** The rest of a long answer is read in its place. */
const CHARS_MAX = 600;

const announcement: Signal<string> = signal('');

/** Lets a screen reader read a text. */
export function announce(text: string): void {
  announcement.value = visible(beginningOf(text, CHARS_MAX));
}

/** The live region. The conversation is not one, because a screen reader would read each word that streams. */
export function Announcer(): JSX.Element {
  return (
    <p class="unseen" role="status" aria-live="polite">
      {announcement.value}
    </p>
  );
}
