/** For each of those that look for a partner, the index of the one that it has found. */
export type Pairs = (number | undefined)[];

/** Pairs in order: each takes the first that fits behind the partner of the one before. `fits[seeker][partner]`. */
export function subsequence(fits: readonly (readonly boolean[])[]): Pairs {
  let next = 0;
  return fits.map((row) => {
    const at = row.indexOf(true, next);
    if (at < 0) return undefined;
    next = at + 1;
    return at;
  });
}

/**
 * As many pairs as there can be, in any order. One that comes late may take the partner of an earlier one that fits
 * another as well (an augmenting path, https://en.wikipedia.org/wiki/Hopcroft–Karp_algorithm#Augmenting_paths).
 */
export function assignment(fits: readonly (readonly boolean[])[]): Pairs {
  const seekerOf = new Map<number, number>();
  const place = (seeker: number, tried: Set<number>): boolean => {
    const partner = fits[seeker]?.findIndex((fit, at) => {
      if (!fit || tried.has(at)) return false;
      tried.add(at);
      const rival = seekerOf.get(at);
      return rival === undefined || place(rival, tried);
    });
    if (partner === undefined || partner < 0) return false;
    seekerOf.set(partner, seeker);
    return true;
  };
  for (const seeker of fits.keys()) place(seeker, new Set());
  const pairs: Pairs = fits.map(() => undefined);
  for (const [partner, seeker] of seekerOf) pairs[seeker] = partner;
  return pairs;
}
