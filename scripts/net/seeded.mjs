/**
 * Random numbers that a seed determines (mulberry32), and the choices that the generators make with them. Two processes
 * with the same seed make the same choices.
 *
 * @param {number} seed
 */
export function seeded(seed) {
  let state = Math.imul(seed + 1, 0x9e3779b1) | 0;
  const next = () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  const int = (limit) => Math.floor(next() * limit);
  return {
    /** A whole number below `limit`. */
    int,
    chance: (share) => next() < share,
    pick: (list) => list[int(list.length)],
    list: (length, make) => Array.from({ length }, (_, at) => make(at)),
  };
}
