/** Returns the first known word of which `word` may be a mistyping, or undefined if `word` itself is known. */
export function nearWord(word: string, known: readonly string[]): string | undefined {
  if (known.includes(word)) return undefined;
  const isNear = (other: string): boolean => distance(word, other) <= Math.min(2, Math.floor(other.length / 3));
  // Mistypings rarely change the first letter.
  return known.find((other) => other[0] === word[0] && Math.abs(other.length - word.length) <= 2 && isNear(other));
}

/** Number of letters to insert, remove, replace or swap with their neighbour (optimal string alignment distance). */
function distance(one: string, other: string): number {
  const width = other.length + 1;
  const rows = [[...Array(width).keys()]];
  const cell = (at: number, to: number): number => rows[at]?.[to] ?? Number.POSITIVE_INFINITY;
  for (let at = 1; at <= one.length; at++) {
    rows.push([at]);
    for (let to = 1; to < width; to++) {
      const isEqual = one[at - 1] === other[to - 1];
      const isSwapped = one[at - 1] === other[to - 2] && one[at - 2] === other[to - 1];
      const changes = [cell(at - 1, to) + 1, cell(at, to - 1) + 1, cell(at - 1, to - 1) + Number(!isEqual)];
      if (isSwapped) changes.push(cell(at - 2, to - 2) + 1);
      rows[at]?.push(Math.min(...changes));
    }
  }
  return cell(one.length, other.length);
}
