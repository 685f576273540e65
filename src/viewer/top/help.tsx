import { type Signal, signal } from '@preact/signals';
import type { JSX } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import { useKeys } from '../elements/keys.ts';
import { FilterHelp } from './filter-box.tsx';

export const isHelpOpen: Signal<boolean> = signal(false);

const KEYS: readonly (readonly [string, string])[] = [
  ['j k  or  ↓ ↑', 'next and previous line'],
  ['Enter', 'open a trace; in a trace, go into the run'],
  ['h l  or  ← →', 'collapse and expand; to what is above and below'],
  ['[ ]', 'collapse all, expand all'],
  ['Home End', 'first and last line'],
  ['/', 'filter; in a trace, search'],
  ['e', 'in a trace: errors only'],
  ['n', 'in a trace: the next error'],
  ['m', 'text as Markdown, or as it is'],
  ['c', 'compare: press on one run, then on another'],
  ['g t', 'traces'],
  ['g r', 'all runs'],
  ['g s', 'statistics'],
  ['Esc', 'back, close, leave the box'],
  ['?', 'this help'],
];

/** All keys, and the language of the filter. */
export function Help(): JSX.Element | null {
  return isHelpOpen.value ? <HelpDialog /> : null;
}

function HelpDialog(): JSX.Element {
  const dialog = useRef<HTMLDialogElement>(null);
  const close = (): void => {
    isHelpOpen.value = false;
  };
  useKeys({ Escape: close, '?': close }, true);
  useEffect(() => dialog.current?.showModal(), []);
  return (
    <dialog ref={dialog} class="help" aria-label="Help" onClose={close}>
      <header>
        <h2>Keys</h2>
        <span class="space" />
        <button type="button" class="button quiet" onClick={close}>
          Close
        </button>
      </header>
      <dl class="help-keys">
        {KEYS.map(([key, about]) => (
          <div key={key}>
            <dt>
              <kbd>{key}</kbd>
            </dt>
            <dd>{about}</dd>
          </div>
        ))}
      </dl>
      <h2>Filter</h2>
      <FilterHelp />
    </dialog>
  );
}
