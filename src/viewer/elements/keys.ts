import type { RefObject } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import { hasMoved } from '../data/navigation.ts';

/** Maps a key (`j`) or two keys in a row (`g s`) to an action. An action that returns false has not handled it. */
export type KeyMap = Readonly<Record<string, (() => unknown) | undefined>>;

/** Maximum time between two keys of a sequence, in milliseconds. */
const SEQUENCE_MS = 1_000;

interface Layer {
  keys: KeyMap;
  /** Whether this layer is a dialog. Layers below a dialog receive no key presses. */
  isModal: boolean;
}

const layers: Layer[] = [];
let first = '';
let firstMs = 0;

/** Registers keys while the component is mounted. The component that was mounted last handles a key first. */
export function useKeys(keys: KeyMap, isModal = false): void {
  const layer = useRef<Layer>({ keys, isModal });
  layer.current.keys = keys;
  useEffect(() => {
    const own = layer.current;
    layers.push(own);
    return () => void layers.splice(layers.indexOf(own), 1);
  }, []);
}

addEventListener('keydown', (event) => {
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || isHandledByTarget(event)) return;
  const sequence = performance.now() - firstMs < SEQUENCE_MS ? `${first} ${event.key}` : '';
  first = event.key;
  firstMs = performance.now();
  if (sequence !== '' && press(sequence, event)) return;
  press(event.key, event);
});

function press(key: string, event: KeyboardEvent): boolean {
  for (const { keys, isModal } of layers.toReversed()) {
    const act = keys[key];
    if (act !== undefined && act() !== false) {
      event.preventDefault();
      return true;
    }
    if (isModal) return false;
  }
  return false;
}

/**
 * Returns whether the focused element handles the key itself, for example in a text box or a scrolled region. In a text
 * box, the first Escape only removes the focus, so that the text is not lost.
 */
function isHandledByTarget({ target, key }: KeyboardEvent): boolean {
  if (!(target instanceof HTMLElement || target instanceof SVGElement)) return false;
  // The browser closes the open menu.
  if (key === 'Escape' && document.querySelector(':popover-open') !== null) return true;
  if (target.closest('input:not([type=checkbox]), textarea, select') !== null) {
    if (key === 'Escape') target.blur();
    return true;
  }
  if ((key === 'Enter' || key === ' ') && target.closest('button, a, summary') !== null) return true;
  return /^(Arrow|Page|Home|End)/.test(key) && target.closest('[data-own-arrows]') !== null;
}

/** Focuses the element when a view opens, if the previously focused element no longer exists. */
export function useFocus(element: RefObject<HTMLElement | null>): void {
  useEffect(() => {
    if (hasMoved() && document.activeElement === document.body) element.current?.focus({ preventScroll: true });
  }, []);
}
