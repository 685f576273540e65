import { shortfallOf } from './complaint.mjs';
import { isTraced } from './drivers.mjs';

/** Measures every driver once per round with `measure(name)`, one at a time. Each round starts with another driver. */
export async function runRounds(names, rounds, measure) {
  const results = [];
  for (let round = 0; names.length > 0 && round < rounds; round++) {
    const first = round % names.length;
    const measured = {};
    for (const name of [...names.slice(first), ...names.slice(0, first)]) {
      measured[name] = await measure(name);
    }
    for (const name of names.filter(isTraced)) measured[name].complaint ??= shortfallOf(measured[name], measured.limit);
    results.push(measured);
  }
  return results;
}
