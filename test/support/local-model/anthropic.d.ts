/** Returns the events of a message of Anthropic. */
export function messageEvents(message: object): Iterable<Record<string, unknown>>;
