import type { RefObject } from 'preact';
import { useLayoutEffect, useState } from 'preact/hooks';
import { type RowWindow, rowWindow } from './rows.tsx';

/** The rows of a scrolled element that are to be in the document. It is drawn anew only when these change. */
export function useRowWindow(element: RefObject<HTMLElement | null>, rowHeight: number, count: number): RowWindow {
  const [place, setPlace] = useState({ scrollTop: 0, height: 0 });
  useLayoutEffect(() => {
    const scrolled = element.current;
    if (scrolled === null) return;
    const measure = (): void => {
      // Whole rows, so that less than a row of scrolling draws nothing.
      const scrollTop = Math.floor(scrolled.scrollTop / rowHeight) * rowHeight;
      const height = scrolled.clientHeight;
      setPlace((last) => (last.scrollTop === scrollTop && last.height === height ? last : { scrollTop, height }));
    };
    measure();
    const resizing = new ResizeObserver(measure);
    resizing.observe(scrolled);
    scrolled.addEventListener('scroll', measure, { passive: true });
    return () => {
      resizing.disconnect();
      scrolled.removeEventListener('scroll', measure);
    };
  }, [element, rowHeight]);
  return rowWindow(place.scrollTop, place.height, rowHeight, count);
}
