/**
 * The version of a channel after another: its whole part counts, the rest is chance. Values are kept by the version of their channel, and two branches of a
 * thread would otherwise give the same version to values of their own, of which one would be lost.
 */
export function versionAfter(current: number | undefined): number {
  return Math.floor(current ?? 0) + 1 + Math.random();
}
