import type { RefObject } from 'preact';
import { useEffect } from 'preact/hooks';
import { hasMoved } from '../data/navigation.ts';

/** The focus goes on to an element with the view that it begins, when what had it is gone with the last one. */
export function useFocus(element: RefObject<HTMLElement | null>): void {
  useEffect(() => {
    if (hasMoved() && document.activeElement === document.body) element.current?.focus({ preventScroll: true });
  }, []);
}
