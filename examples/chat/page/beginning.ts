/** The text, or as much of its beginning as so many characters hold, with a sign that it goes on. */
export function beginningOf(text: string, charsMax: number): string {
  if (text.length <= charsMax) return text;
  // No half of a pair is left at the end.
  return `${text
    .slice(0, charsMax - 1)
    .replace(/[\ud800-\udbff]$/, '')
    .trimEnd()}…`;
}
