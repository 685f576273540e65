/** Returns undefined for an empty list. */
export function median(numbers) {
  if (numbers.length === 0) return undefined;
  const sorted = numbers.toSorted((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

/** Returns the smallest number that at least `share` of the sorted numbers do not exceed. */
export function quantile(sorted, share) {
  // Rounding errors must not turn a whole product into the next integer.
  const needed = Math.ceil(Number((sorted.length * share).toFixed(6)));
  return sorted[Math.max(needed, 1) - 1];
}
