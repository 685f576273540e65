/** The JSON text of a text. Halves of surrogate pairs, which strict services refuse, become U+FFFD. */
export function jsonText(text: string): string {
  return JSON.stringify(text.toWellFormed());
}

/** Names are few, and come again with each run. */
const NAME_CHARACTERS_MAX = 64;
const NAMES_MAX = 1_000;

const names = new Map<string, string>();

/** The same of a name, of a run or of a key, which is kept for the next one. */
export function jsonName(name: string): string {
  let json = names.get(name);
  if (json !== undefined) return json;
  json = jsonText(name);
  if (name.length > NAME_CHARACTERS_MAX) return json;
  if (names.size >= NAMES_MAX) names.clear();
  names.set(name, json);
  return json;
}
