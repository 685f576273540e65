import type { Redaction } from './redaction.ts';

/** Of a text that is cut, this share is kept from its head and the rest from its tail. */
const HEAD_SHARE = 0.75;

/**
 * So many characters beyond what is kept are searched for secrets as well: one that lies across the cut must not be left in
 * part, and all of a very long text would take too long.
 */
const MARGIN = 65_536;

/** Where a text is cut: `[0, head)` and `[tail, length)` are kept. */
interface Cut {
  readonly head: number;
  readonly tail: number;
}

/** The text with at most so many characters of its own, from its head and its tail, and a marker for the others. */
export function truncate(text: string, kept: number, share: number = HEAD_SHARE): string {
  const cut = cutOf(text, Math.max(0, kept), share);
  return `${text.slice(0, cut.head)}${marker(cut)}${text.slice(cut.tail)}`;
}

/**
 * The text without what the redaction finds in it, and then cut where it is longer than `kept`. A secret that begins or ends
 * in what is kept is found up to 64 Ki characters beyond the cut.
 */
export function redactAndTruncate(
  text: string,
  kept: number,
  redaction: Redaction,
  trail: readonly (string | number)[],
  share: number = HEAD_SHARE,
): string {
  if (text.length <= kept || text.length <= kept + 2 * MARGIN) {
    const shown = redaction.maskFound(text, trail);
    return shown.length <= kept ? shown : truncate(shown, kept, share);
  }
  const cut = cutOf(text, Math.max(0, kept), share);
  const head = redaction.maskHead(text.slice(0, cut.head + MARGIN), cut.head, trail);
  const start = cut.tail - MARGIN;
  const tail = redaction.maskTail(text.slice(start), cut.tail - start, trail);
  return head + marker(cut) + tail;
}

function cutOf(text: string, kept: number, share: number): Cut {
  const first = Math.floor(kept * share);
  const rest = text.length - (kept - first);
  // Half a surrogate pair is no text.
  return { head: isWithinPair(text, first) ? first - 1 : first, tail: isWithinPair(text, rest) ? rest + 1 : rest };
}

function marker({ head, tail }: Cut): string {
  return `[Truncated: ${tail - head} characters]`;
}

function isWithinPair(text: string, at: number): boolean {
  return /^[\ud800-\udbff][\udc00-\udfff]$/.test(text.slice(Math.max(0, at - 1), at + 1));
}
