import { shortfallOf } from './complaint.mjs';
import { isTraced } from './drivers.mjs';
import { runDriver } from './processes.mjs';

/** Runs every driver once per round, one at a time. Each round starts with another driver. */
export async function runRounds(names, rounds, sink, jobOf) {
  const results = [];
  for (let round = 0; names.length > 0 && round < rounds; round++) {
    const first = round % names.length;
    const measured = {};
    for (const name of [...names.slice(first), ...names.slice(0, first)]) {
      measured[name] = await runDriver(name, { sink, ...jobOf(name) });
    }
    for (const name of names.filter(isTraced)) measured[name].complaint ??= shortfallOf(measured[name], measured.limit);
    results.push(measured);
  }
  return results;
}
