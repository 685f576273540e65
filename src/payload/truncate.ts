import type { Limits } from '../config/limits.ts';
import type { PayloadLimits } from './plain.ts';
import type { Trail } from './redaction/paths.ts';
import type { Redaction } from './redaction/redact.ts';

export interface PayloadRules extends PayloadLimits {
  /** The redaction rules to apply. Undefined if nothing is masked. */
  readonly redaction?: Redaction | undefined;
  /** Whether binary values and data URIs stay in the payload, within its limits, and do not become attachments. */
  readonly isInline?: true;
  /** Whether BigInts and cycles are encoded as LangSmith does. */
  readonly isLangSmith?: true;
}

export function payloadRules({ payloadCharacters: bytes }: Limits, redaction: Redaction | undefined): PayloadRules {
  return { depth: 64, width: 10_000, nodes: 100_000, bytes, redaction };
}

/** Share of the kept characters that come from the start of a truncated text. The rest come from the end. */
const HEAD_SHARE = 0.75;

/** Number of characters searched for secrets beyond each cut. A secret may extend across the cut. */
const MARGIN = 65_536;

/** Keeps `kept` characters from the start and end of a text, with a marker in between. */
export function truncate(text: string, kept: number): string {
  const { head, tail } = cutOf(text, Math.max(0, kept));
  return text.slice(0, head) + marker(head, tail) + text.slice(tail);
}

/** Masks secrets and truncates the text. Secrets that extend across a cut are masked or removed. */
export function redactAndTruncate(text: string, kept: number, redaction: Redaction, trail: Trail): string {
  if (text.length <= kept + 2 * MARGIN) {
    const shown = redaction.maskFound(text, trail);
    return shown.length <= kept ? shown : truncate(shown, kept);
  }
  const { head, tail } = cutOf(text, Math.max(0, kept));
  const first = redaction.maskFound(text.slice(0, head + MARGIN), trail);
  const last = redaction.maskFound(text.slice(tail - MARGIN), trail);
  // The margin is removed, because it may contain part of a secret.
  const shownHead = first.slice(0, Math.min(head, Math.max(0, first.length - MARGIN)));
  const shownTail = last.slice(Math.max(MARGIN, last.length - (text.length - tail)));
  return shownHead + marker(head, tail) + shownTail;
}

function cutOf(text: string, kept: number): { readonly head: number; readonly tail: number } {
  const head = Math.floor(kept * HEAD_SHARE);
  const tail = text.length - (kept - head);
  // A cut inside a surrogate pair would leave a lone surrogate.
  return { head: isWithinPair(text, head) ? head - 1 : head, tail: isWithinPair(text, tail) ? tail + 1 : tail };
}

function marker(head: number, tail: number): string {
  return `[Truncated: ${tail - head} characters]`;
}

function isWithinPair(text: string, at: number): boolean {
  return /^[\ud800-\udbff][\udc00-\udfff]$/.test(text.slice(Math.max(0, at - 1), at + 1));
}
