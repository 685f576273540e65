// Compares what two builds record of generated values.
import { BYTES, differences, Findings, isTree, NESTED_JSON, workerOutput } from './comparison.mjs';
import { generatedValue } from './generated-values.mjs';

/**
 * Differences that are meant, by their kind as it is printed: the run and its field, the kind of the value there, what the other build
 * records and what this one does.
 *
 * @type {{ of: RegExp, old?: RegExp, now?: RegExp, reason: string }[]}
 */
const INTENDED = [
  { of: /^failed error: .*\[Truncated: /, reason: 'a secret next to a cut is masked with the text up to the cut' },
  NESTED_JSON,
  { of: / → text with \[Truncated/, now: /^"[\w+/]*\[Truncated: \d+ characters\][\w+/]*=*"$/, reason: BYTES.reason },
  {
    of: / → text with \[Redacted\]/,
    old: /Truncated: \d+ characters/,
    now: /Truncated: \d+ characters/,
    reason: 'JSON text that is searched at every level has another length when it is cut',
  },
  {
    of: /\[Truncated: N characters\] → /,
    reason: 'bytes and JSON text in text have another length, so that text is cut elsewhere',
  },
];

/** Values of one pair of workers. */
const BLOCK = 10_000;
const HASH_BYTES = 8;
/** Differences of which the values are looked at. */
const SHOWN_MAX = 2_000;

/**
 * Compares the records of `count` values, and returns whether every difference is intended.
 *
 * @param {{ node: string, folders: string[], count: number, seed: number }} options
 */
export async function compareValues(options) {
  const different = [];
  for (let first = 0; first < options.count; first += BLOCK) {
    const count = Math.min(BLOCK, options.count - first);
    const [old, now] = await outputs(options, [options.seed, first, count]);
    if ([old, now].some(({ length }) => length !== count * HASH_BYTES))
      throw new Error(`A worker ended before value ${first + count}.`);
    for (let at = 0; at < count * HASH_BYTES; at += HASH_BYTES) {
      const isSame = old.subarray(at, at + HASH_BYTES).equals(now.subarray(at, at + HASH_BYTES));
      if (!isSame) different.push(first + at / HASH_BYTES);
    }
  }
  console.log(`values: ${options.count} with seed ${options.seed}, ${different.length} recorded differently`);
  if (different.length > SHOWN_MAX) console.log(`Kinds are those of the first ${SHOWN_MAX}.`);
  return different.length === 0 || showDifferences(different.slice(0, SHOWN_MAX), options);
}

function outputs(options, args) {
  const { folders } = options;
  const ended = folders.map((folder) => workerOutput('value-worker.mjs', folder, args, options));
  return Promise.all(ended.map(async (each) => (await each).output));
}

async function showDifferences(indexes, options) {
  const findings = new Findings(INTENDED);
  const shown = await outputs(options, [options.seed, JSON.stringify(indexes), 0, '--show']);
  const [olds, nows] = shown.map((output) =>
    output
      .toString()
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line)),
  );
  for (const [at, index] of indexes.entries()) {
    const value = generatedValue(options.seed, index);
    const sources = {
      value: { inputs: { v: value }, outputs: value, metadata: { v: value } },
      chunks: { inputs: { input: value }, outputs: { outputs: [value] } },
      failed: { events: [{ kwargs: { v: value } }], error: value },
    };
    for (const { path, old, now } of differences(olds[at], nows[at], true)) {
      const source = path.reduce(below, sources);
      const kind = `${path.slice(0, 2).join(' ')}: ${kindOf(source)}: ${shapeOf(old)} → ${shapeOf(now)}`;
      findings.add(kind, `value ${index}, at ${path.join('/')}`, old, now);
    }
  }
  return findings.report();
}

function below(source, key) {
  try {
    return source instanceof Map ? source.get(key) : source[key];
  } catch {
    return undefined;
  }
}

function kindOf(value) {
  if (!isTree(value)) return value === null ? 'null' : typeof value;
  try {
    const tag = Object.prototype.toString.call(value).slice('[object '.length, -1);
    return typeof value.toJSON === 'function' ? `${tag} with toJSON` : tag;
  } catch {
    return 'object that throws';
  }
}

function shapeOf(recorded) {
  if (isTree(recorded)) return Array.isArray(recorded) ? 'list' : 'object';
  const marker = /\[[A-Z]\w*[^\]]{0,30}\]?/.exec(typeof recorded === 'string' ? recorded : '');
  return marker === null ? typeof recorded : `text with ${marker[0].replace(/\d+/g, 'N')}`;
}
