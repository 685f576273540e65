export function table(heading: string, counts: Iterable<readonly [string, number]>): string {
  const all = [...counts];
  const width = Math.max(0, ...all.map(([name]) => name.length));
  return [heading, ...all.map(([name, count]) => `  ${name.padEnd(width)}  ${count}`)].join('\n');
}

export function tally(counts: Map<string, number>, name: string, by = 1): void {
  counts.set(name, (counts.get(name) ?? 0) + by);
}

export function neverReached(counts: ReadonlyMap<string, number>): string[] {
  return [...counts].filter(([, count]) => count === 0).map(([name]) => name);
}
