// Compares what generated programs deliver with two builds.
import { BYTES, differences, Findings, NESTED_JSON, workerOutput } from './comparison.mjs';

/**
 * Differences that are meant, by their kind as it is printed: `<scenario>: <field>/…`, with N for numbers. A start is sent only
 * if its run is still open after `startDelayMs`; this is no difference here, as records are merged by their runs, and all
 * runs of programs whose requests are compared exactly start and end before the first batch.
 *
 * @type {{ of: RegExp, old?: RegExp, now?: RegExp, reason: string }[]}
 */
const INTENDED = [
  {
    of: /\/extra(\/metadata)?$/,
    old: /^({"metadata":{}}|{})$/,
    now: /^nothing$/,
    reason: 'empty metadata is not sent',
  },
  {
    of: /\/attachments\/\w+$|^exact: requests\/N\/parts$/,
    old: /^nothing$|\]$/,
    now: /attachment\.|Content-Type/,
    reason: 'the start of a run that is still open carries what was attached so far',
  },
  {
    of: /\/inputs\/(input|args)$/,
    old: /^nothing$|revoked/,
    now: /^nothing$|revoked/,
    reason: 'an argument that cannot be read costs only itself',
  },
  NESTED_JSON,
  BYTES,
  { of: /^exact: requests/, now: /[\w+/]{16}\[Truncated: \d+ characters\][\w+/]{16}/, reason: BYTES.reason },
  { of: /\/baggage$/, old: /%5C%5C%5C|Truncated/, reason: NESTED_JSON.reason },
  {
    of: /^413 for large runs: known\//,
    reason: 'a run with JSON text in text may have another size, and need not lose its payloads',
  },
  {
    of: /^exact: /,
    old: /Truncated: \d+ characters/,
    now: /Truncated: \d+ characters/,
    reason: 'text next to masked JSON text is cut elsewhere',
  },
];

/**
 * Log lines that may be worded differently in the two builds: a line that matches is compared by its name.
 *
 * @type {{ of: RegExp, name: string }[]}
 */
const LINES = [
  // Two timers race for the same deadline, one of them undici's.
  {
    of: /^warn: delivery to <service> failed: (no answer within|the request failed \(UND_ERR_HEADERS_TIMEOUT)/,
    name: 'delivery failed: no response in time',
  },
  { of: /^warn: a run is too large for the service.* its payloads/, name: 'payloads left out' },
  { of: /^warn: a run is too large for the service.* its attachments/, name: 'attachments left out' },
  { of: /^warn: (a run is sent as incomplete, as |an open run exceeds .* is sent as incomplete)/, name: 'incomplete' },
  { of: /^warn: delivery to <service> failed: status 404: (neither|the service has neither) /, name: 'no route' },
  { of: /^warn: the service (takes|accepts) single runs only/, name: 'single runs only' },
  {
    of: /^warn: the payloads of a run (held binary data beyond|exceeded) limits.attachmentBytes/,
    name: 'binary left out',
  },
];

/** Programs of one process: one that hangs takes few others with it. */
const SHARE = 50;

/**
 * Compares programs, and returns whether every difference is intended. With `only`, one program with all that it did.
 *
 * @param {{ node: string, folders: string[], count: number, seed: number, only: number | undefined }} options
 */
export async function comparePrograms(options) {
  const { only, count, seed, folders } = options;
  const [against, candidate] = folders;
  const indexes = only === undefined ? Array.from({ length: count }, (_, at) => at) : [only];
  const findings = new Findings(INTENDED);
  const different = new Set();
  let runs = 0;
  for (let first = 0; first < indexes.length; first += SHARE) {
    const share = indexes.slice(first, first + SHARE);
    const [olds, nows] = await Promise.all(folders.map((folder) => results([folder], share, options)));
    const recovering = share.filter((index) => olds.get(index)?.outcome.isRecovered);
    const recovered = await results([against, candidate], recovering, options);
    for (const [name, index, old, now] of [
      ...share.map((each) => ['', each, olds.get(each), nows.get(each)]),
      ...recovering.map((each) => ['spool of the other build: ', each, olds.get(each), recovered.get(each)]),
    ]) {
      if (only !== undefined) console.log(JSON.stringify({ old, now }, undefined, 1));
      runs += Object.keys(old?.known ?? {}).length;
      for (const difference of differences(old, now, false)) {
        different.add(index);
        const place = difference.path.join('/');
        const kind = `${name}${old?.scenario}: ${place.replace(/\d+/g, 'N')}`;
        findings.add(kind, `program ${index}, at ${place}`, difference.old, difference.now);
      }
    }
  }
  console.log(
    `programs: ${indexes.length} with seed ${seed}, ${runs} runs delivered, ${different.size} programs differ`,
  );
  return findings.report() && runs > 0;
}

/** The results of programs by their indexes, without those that a worker did not get to. */
async function results([folder, later = folder], indexes, options) {
  if (indexes.length === 0) return new Map();
  const args = [options.seed, JSON.stringify(indexes), later];
  const { output, code } = await workerOutput('program-worker.mjs', folder, args, options);
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
