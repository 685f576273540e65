// Compares what generated programs deliver with two builds.
import { differences, Findings, workerOutput } from './comparison.mjs';

/**
 * Differences that are meant, by their kind as it is printed: `<scenario>/<field>/…`, with N for numbers. A start is sent only
 * if its run is still open after `startDelayMs`; this is no difference here, as records are merged by their runs, and all
 * runs of programs whose requests are compared exactly start and end before the first batch.
 *
 * @type {{ of: RegExp, reason: string }[]}
 */
const INTENDED = [];

/**
 * Log lines that are worded differently in the two builds: a line that matches is compared by its name.
 *
 * @type {{ of: RegExp, name: string }[]}
 */
const LINES = [];

/** Programs of one process: one that hangs takes few others with it. */
const SHARE = 50;

/**
 * Compares programs, and returns whether every difference is intended. With `only`, one program with all that it did.
 *
 * @param {{ node: string, folders: string[], count: number, seed: number, only: number | undefined }} options
 */
export async function comparePrograms(options) {
  const { only, count, seed, folders } = options;
  const indexes = only === undefined ? Array.from({ length: count }, (_, at) => at) : [only];
  const findings = new Findings(INTENDED);
  let runs = 0;
  const different = new Set();
  for (let first = 0; first < indexes.length; first += SHARE) {
    const share = indexes.slice(first, first + SHARE);
    const [olds, nows] = await Promise.all(folders.map((folder) => results(folder, share, options)));
    for (const index of share) {
      const [old, now] = [olds.get(index), nows.get(index)];
      if (only !== undefined) console.log(JSON.stringify({ old, now }, undefined, 1));
      runs += Object.keys(old?.known ?? {}).length;
      for (const difference of differences(old, now, false)) {
        different.add(index);
        const kind = [old?.scenario, ...difference.path].join('/').replace(/\d+/g, 'N');
        findings.add(kind, `program ${index}, at ${difference.path.join('/')}`, difference.old, difference.now);
      }
    }
  }
  console.log(
    `programs: ${indexes.length} with seed ${seed}, ${runs} runs delivered, ${different.size} programs differ`,
  );
  return findings.report() && runs > 0;
}

/** The results of programs by their indexes, without those that a worker did not get to. */
async function results(folder, indexes, options) {
  const { output, code } = await workerOutput(
    'program-worker.mjs',
    folder,
    [options.seed, JSON.stringify(indexes)],
    options,
  );
  const made = output
    .toString()
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line));
  if (made.length < indexes.length) console.log(`${folder}: ended with ${code} in program ${indexes[made.length]}`);
  const name = (line) => LINES.find(({ of }) => of.test(line))?.name ?? line;
  for (const result of made) result.lines = [...new Set(result.lines.map(name))].sort();
  return new Map(made.map((result) => [result.index, result]));
}
