import { useEffect, useRef } from 'preact/hooks';

/** What keys do: `j`, `ArrowDown`, `Enter`, or two in a row, `g s`. False lets the browser have the key after all. */
export type KeyMap = Readonly<Record<string, (() => unknown) | undefined>>;

/** Two keys belong together when they come within this time. */
const SEQUENCE_MS = 1_000;

interface Layer {
  keys: KeyMap;
  /** A dialog: what is below it does not hear keys. */
  isModal: boolean;
}

const layers: Layer[] = [];
let first = '';
let firstMs = 0;

/** Keys as long as the component is there. What came last is asked first. */
export function useKeys(keys: KeyMap, isModal = false): void {
  const layer = useRef<Layer>({ keys, isModal });
  layer.current.keys = keys;
  useEffect(() => {
    const own = layer.current;
    layers.push(own);
    return () => {
      layers.splice(layers.indexOf(own), 1);
    };
  }, []);
}

addEventListener('keydown', (event) => {
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || isTyping(event)) return;
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
 * Keys that belong to what has the focus: text that is typed, a button that is pressed, a region that is scrolled. Escape
 * leaves a box, and only from there what the box is in: what was typed is not lost with it.
 */
function isTyping({ target, key }: KeyboardEvent): boolean {
  if (!(target instanceof HTMLElement || target instanceof SVGElement)) return false;
  if (target.closest('input, textarea, select') !== null) {
    if (key === 'Escape') target.blur();
    return true;
  }
  if ((key === 'Enter' || key === ' ') && target.closest('button, a, summary') !== null) return true;
  return /^(Arrow|Page|Home|End)/.test(key) && target.closest('[data-own-arrows]') !== null;
}

/** A reader who types asks once, after a moment in which nothing was typed. */
const TYPING_MS = 150;

export function isTyped(signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, TYPING_MS);
    signal.addEventListener('abort', () => {
      clearTimeout(timer);
      reject(signal.reason);
    });
  });
}
