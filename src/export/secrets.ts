/** Headers that say who we are and not who may. */
const OPEN: ReadonlySet<string> = new Set(['user-agent', 'accept', 'x-tenant-id']);

/** Shorter values stand in any text by chance. */
const LENGTH_MIN = 6;

/**
 * A message without the values of these headers, and without users and passwords in URLs. Our own messages have none; those of
 * connections, proxies and dispatchers of the application may.
 */
export function withoutSecrets(message: string, headers: Readonly<Record<string, string>>): string {
  let text = message.replace(/(?<=\/\/)[^\s/@]*@/g, '');
  for (const [name, value] of Object.entries(headers)) {
    if (!OPEN.has(name) && value.length >= LENGTH_MIN) text = text.replaceAll(value, '[hidden]');
  }
  return text;
}
