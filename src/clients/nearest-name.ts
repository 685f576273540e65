/** The name that is most like one that is not known; undefined where none is like it. */
export function nearestName(unknown: string, known: readonly string[]): string | undefined {
  const name = unknown.toLowerCase();
  // A longer one is no misspelling, and takes its time.
  if (name.length > 100) return undefined;
  let nearest: string | undefined;
  let fewest = Math.max(1, Math.floor(name.length * 0.4)) + 1;
  for (const candidate of known) {
    const edits = editsBetween(name, candidate.toLowerCase());
    if (edits < fewest) [nearest, fewest] = [candidate, edits];
  }
  return nearest;
}

/** Characters to put in, take out or replace to make one of the other (Levenshtein). `repoRef` and `repo_ref` are one apart. */
function editsBetween(one: string, other: string): number {
  let row = Array.from({ length: other.length + 1 }, (_, column) => column);
  for (const [line, character] of [...one].entries()) {
    const above = row;
    row = [line + 1];
    for (let column = 1; column <= other.length; column++) {
      const replaced = (above[column - 1] ?? 0) + (character === other[column - 1] ? 0 : 1);
      row.push(Math.min(replaced, (above[column] ?? 0) + 1, (row[column - 1] ?? 0) + 1));
    }
  }
  return row.at(-1) ?? 0;
}
