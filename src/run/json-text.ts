/** The JSON text of a text. Halves of surrogate pairs, which strict services refuse, become U+FFFD. */
export function jsonText(text: string): string {
  return JSON.stringify(text.toWellFormed());
}
