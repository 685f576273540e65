/**
 * The text of anything, for messages: what `String` gives, or a stand-in where the value's own code throws
 * (`Object.create(null)`, a revoked proxy, a `toString` that throws).
 */
export function safeText(value: unknown): string {
  try {
    return typeof value === 'string' ? value : String(value);
  } catch {
    return `[unprintable ${typeof value}]`;
  }
}

/** The message of whatever was thrown, on one line of at most 300 characters. */
export function messageOf(thrown: unknown): string {
  let message: string;
  try {
    message = thrown instanceof Error ? thrown.message : safeText(thrown);
  } catch {
    message = safeText(undefined);
  }
  return safeText(message)
    .replace(/[\p{Cc}\s]+/gu, ' ')
    .slice(0, 300);
}
