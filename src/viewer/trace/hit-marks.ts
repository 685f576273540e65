import type { RefObject } from 'preact';
import { useEffect } from 'preact/hooks';

const MARKS_MAX = 2_000;

/**
 * Marks the words of a search in the text of an element, including text that is rendered later. When a section of a run
 * first contains a mark, scrolls to it. Elements are not changed, so any component's text can be marked. Browsers
 * without the CSS Custom Highlight API show no marks.
 */
export function useHitMarks(element: RefObject<HTMLElement | null>, search: string): void {
  useEffect(() => {
    const pattern = patternOf(search);
    const root = element.current;
    if (root === null || pattern === undefined || !('highlights' in CSS)) return;
    const seen = new WeakSet<Element>();
    let frame = 0;
    const mark = (): void => {
      const ranges = rangesIn(root, pattern);
      CSS.highlights.set('hit', new Highlight(...ranges));
      const inSection = ranges.find(({ startContainer }) => startContainer.parentElement?.closest('.section'));
      const target = inSection?.startContainer.parentElement;
      const panel = target?.closest('.panel');
      if (!target || !panel || seen.has(panel)) return;
      seen.add(panel);
      target.scrollIntoView({ block: 'center' });
    };
    const observer = new MutationObserver(() => {
      cancelAnimationFrame(frame);
      frame = requestAnimationFrame(mark);
    });
    observer.observe(root, { childList: true, subtree: true, characterData: true });
    mark();
    return () => {
      observer.disconnect();
      cancelAnimationFrame(frame);
      CSS.highlights.delete('hit');
    };
  }, [search]);
}

/** Returns a pattern that matches each word and each quoted phrase of a search, as the receiver's search does. */
export function patternOf(search: string): RegExp | undefined {
  const words = [...search.matchAll(/"([^"]+)"?|[^\s"]+/g)].map(([word, phrase]) => phrase ?? word);
  if (words.length === 0) return undefined;
  return new RegExp(words.map((word) => word.replace(/[\\^$.*+?()[\]{}|/]/g, '\\$&')).join('|'), 'giu');
}

function rangesIn(root: HTMLElement, pattern: RegExp): Range[] {
  const ranges: Range[] = [];
  const texts = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
  while (texts.nextNode() && ranges.length < MARKS_MAX) {
    const text = texts.currentNode as Text;
    for (const { 0: found, index } of text.data.matchAll(pattern)) {
      const range = new Range();
      range.setStart(text, index);
      range.setEnd(text, index + found.length);
      ranges.push(range);
    }
  }
  return ranges;
}
