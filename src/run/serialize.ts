import { messageOf } from '../base/text.ts';
import { jsonText } from './json-text.ts';
import { JsonWriter } from './json-writer.ts';
import type { PayloadAttachments } from './payload-attachments.ts';
import type { PayloadRules } from './payload-rules.ts';
import { failureText, MASK } from './redaction.ts';
import type { PathPlace, Step } from './redaction-paths.ts';
import { mayHoldNames } from './text-secrets.ts';

/** Where a value belongs: its field, and the way down from there; a place in a list may be unknown. */
export type Way = readonly (Step | undefined)[];

/**
 * The JSON text of any value, as it is at this moment. Never throws: what JSON cannot hold is told in its place, and the rest
 * of the payload is kept:
 *
 * - cycles `[Circular]`, functions `[Function name]`, promises `[Promise]`, streams and iterators by their kind, symbols by
 *   their description, a proxy that cannot be read `[Proxy]`;
 * - BigInt `123n`; NaN and the infinities by name; dates in ISO 8601; URLs without user and password;
 * - Map, Headers and the like an object, a Map with other keys a list of pairs; Set a list;
 * - Error an object of name, message, stack, cause and its own properties;
 * - Request, Response, Blob and File an object that begins with their `type`; binary `{ type, byteLength, base64 }` with at
 *   most 1 KiB of it; with `attachments` a larger one and a Blob `{ type, byteLength, attachment }`, and a long data URI
 *   `[Attachment name: type, bytes]`;
 * - a getter or `toJSON` that throws `[Threw: message]`, with the rest of its object kept;
 * - beyond the limits a marker that says how much was cut; a mask for what the redaction hides.
 */
export function serialize(
  value: unknown,
  rules: PayloadRules,
  way: Way = [],
  attachments?: PayloadAttachments,
): string {
  const { redaction } = rules;
  try {
    if (redaction === undefined) return new JsonWriter(rules, undefined, [], attachments).write(value);
    if (redaction.hidesAll) return jsonText(MASK);
    const last = way.at(-1);
    const place = placeOf(redaction.root, way);
    const isHidden =
      place?.isEnd === true ||
      (typeof last === 'string' && redaction.keys.of(last).isSpecial && redaction.isHidden(last, value, {}));
    if (isHidden) return jsonText(redaction.mask(value, trailOf(way)));
    const short = redaction.hasPatterns ? undefined : shortJson(value, rules);
    return short ?? new JsonWriter(rules, place, trailOf(way), attachments).write(value);
  } catch (thrown) {
    attachments?.clear();
    // Otherwise limits are set beyond what the stack or a string holds.
    return jsonText(failureText(thrown) ?? `[Threw: ${messageOf(thrown)}]`);
  }
}

/** A text of up to this many characters needs no writer. */
const SHORT_CHARACTERS = 100;

/** The JSON text of a value that is quickly written, as most of the metadata are; undefined for any other. */
function shortJson(value: unknown, { bytes }: PayloadRules): string | undefined {
  if (typeof value === 'string') {
    return value.length <= Math.min(SHORT_CHARACTERS, bytes) && !mayHoldNames(value) ? jsonText(value) : undefined;
  }
  return Number.isFinite(value) || typeof value === 'boolean' ? String(value) : undefined;
}

/** A way as it is shown to a replacement. */
export function trailOf(way: Way): Step[] {
  return way.map((step) => step ?? '*');
}

/** How far the paths of a redaction go along with a way. */
export function placeOf(root: PathPlace | undefined, way: Way): PathPlace | undefined {
  let place = root;
  for (const step of way) {
    place = place?.step(step);
    if (place?.isEnd === true) return place;
  }
  return place;
}
