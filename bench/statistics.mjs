/** The middle of some numbers, or of the two that stand there; undefined when there are none. */
export function median(numbers) {
  if (numbers.length === 0) return undefined;
  const sorted = numbers.toSorted((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

/** The smallest of some sorted numbers that this share of them does not exceed. */
export function quantile(sorted, share) {
  // A product that is whole must not become the next one by the last bit of its fraction.
  const needed = Math.ceil(Number((sorted.length * share).toFixed(6)));
  return sorted[Math.max(needed, 1) - 1];
}
