import { type Signal, signal } from '@preact/signals';
import type { JSX } from 'preact';
import { visible } from './visible-text.ts';

/** Of a long answer the rest is read in its place. */
const CHARS_MAX = 600;

const said: Signal<string> = signal('');

/** Has a screen reader say something, when it has said what it is at. */
export function announce(text: string): void {
  if (text !== '') said.value = visible(text.length > CHARS_MAX ? `${text.slice(0, CHARS_MAX)}…` : text);
}

/** Takes back what was said, which is of a conversation that is not read any more. */
export function hush(): void {
  said.value = '';
}

/** What is announced. The conversation itself is none of it, as each word that streams would be. */
export function Announcer(): JSX.Element {
  return (
    <p class="unseen" role="status" aria-live="polite">
      {said.value}
    </p>
  );
}
