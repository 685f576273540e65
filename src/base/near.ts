/** Returns the first known word that differs from `word` by at most two letters, or undefined if `word` itself is known. */
export function nearWord(word: string, known: readonly string[]): string | undefined {
  if (known.includes(word)) return undefined;
  const isNear = (other: string): boolean => distance(word, other) <= Math.min(2, Math.floor(other.length / 3));
  return known.find((other) => Math.abs(other.length - word.length) <= 2 && isNear(other));
}

/** Number of letters to insert, remove or replace (Levenshtein distance). */
function distance(one: string, other: string): number {
  let row = [...Array(other.length + 1).keys()];
  for (const [at, letter] of [...one].entries()) {
    const next = [at + 1];
    for (const [to, wanted] of [...other].entries()) {
      const replaced = (row[to] as number) + Number(letter !== wanted);
      next.push(Math.min(replaced, (row[to + 1] as number) + 1, (next[to] as number) + 1));
    }
    row = next;
  }
  return row.at(-1) as number;
}
