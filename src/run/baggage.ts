/** Bytes and members of a baggage header that everybody on the way has to keep (W3C Baggage, 3.3.2). */
export const BAGGAGE_BYTES_MAX = 8_192;
const MEMBERS_MAX = 64;

/** One `key=value;property` of a baggage header, as it was written. */
export interface BaggageMember {
  readonly key: string;
  readonly text: string;
}

/**
 * The members of a W3C `baggage` header, values still encoded. What is no member is left out, and so is what lies beyond the
 * limits of the specification: https://www.w3.org/TR/baggage/
 */
export function parseBaggage(header: string): BaggageMember[] {
  const members: BaggageMember[] = [];
  // A part of a member would be another member.
  const end = header.length <= BAGGAGE_BYTES_MAX ? header.length : header.lastIndexOf(',', BAGGAGE_BYTES_MAX);
  for (const part of header.slice(0, Math.max(0, end)).split(',', MEMBERS_MAX)) {
    const text = part.trim();
    const equals = text.indexOf('=');
    if (equals > 0) members.push({ key: text.slice(0, equals).trimEnd(), text });
  }
  return members;
}

/** The value of a member, decoded; undefined when there is none, or it is not encoded as it has to be. */
export function baggageValue(members: readonly BaggageMember[], key: string): string | undefined {
  const text = members.find((member) => member.key === key)?.text;
  if (text === undefined) return undefined;
  const [value = ''] = text.slice(text.indexOf('=') + 1).split(';', 1);
  try {
    return decodeURIComponent(value.trim());
  } catch {
    return undefined;
  }
}

/** A member of this key and value, encoded. Half a surrogate pair, which has no UTF-8, becomes U+FFFD. */
export function baggageMember(key: string, value: string): BaggageMember {
  return { key, text: `${key}=${encodeURIComponent(Buffer.from(value).toString())}` };
}
