import { median } from './statistics.mjs';

/**
 * Returns one row per driver: each figure's median and spread, its ratios to the limit, to OTLP/JSON and to
 * `traceable`, and its difference to the untraced program. If one of the driver's rounds does not count, the row has a
 * `complaint` instead. Ratios are calculated within each round, when the machine's load was about the same.
 */
export function summarize(names, rounds) {
  return names.map((name) => {
    const results = rounds.map((round) => round[name]);
    const complaint = results
      .map((result, at) => result.complaint && `round ${at + 1}: ${result.complaint}`)
      .find(Boolean);
    if (complaint !== undefined) return { name, complaint, rounds: results };
    const { complaint: _, ...figures } = results[0];
    return {
      name,
      rounds: results,
      ...perFigure(figures, (figure) => ({
        median: median(results.map((result) => result[figure])),
        min: Math.min(...results.map((result) => result[figure])),
        max: Math.max(...results.map((result) => result[figure])),
        toLimit: median(pairs(name, 'limit', rounds, (own, limit) => own[figure] / limit[figure])),
        toOtlp: median(pairs(name, 'otlp-json', rounds, (own, otlp) => own[figure] / otlp[figure])),
        toTraceable: median(pairs(name, 'traceable', rounds, (own, traceable) => own[figure] / traceable[figure])),
        overUntraced: median(pairs(name, 'untraced', rounds, (own, untraced) => own[figure] - untraced[figure])),
      })),
    };
  });
}

function perFigure(figures, make) {
  return Object.fromEntries(Object.keys(figures).map((figure) => [figure, make(figure)]));
}

/** Returns the results of `compare` for rounds in which both drivers count. */
function pairs(name, other, rounds, compare) {
  return rounds
    .filter((round) => counts(round[name]) && counts(round[other]))
    .map((round) => compare(round[name], round[other]))
    .filter(Number.isFinite);
}

function counts(result) {
  return result !== undefined && result.complaint === undefined;
}
