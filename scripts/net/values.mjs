// Compares what two builds record of generated values: npm run test:net -- values --against <folder of a built checkout>.
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { generatedValue } from './generated-values.mjs';

/**
 * Differences that are meant. `of` matches the class of a difference as it is printed: the field, the kind of the value
 * there, what the other build records and what this one does.
 *
 * @type {{ of: RegExp, reason: string }[]}
 */
const INTENDED = [];

const BLOCK = 20_000;
/** Differences of which the values are looked at. */
const LOOKED_AT_MAX = 2_000;
const CONFIGURATIONS = ['default', 'redact paths', 'redact patterns', 'small limits', 'no keys hidden'];

/**
 * Compares the records of `count` values, and returns whether every difference is intended.
 *
 * @param {{ node: string, against: string, candidate: string, count: number, seed: number }} options
 */
export async function compareValues(options) {
  const different = [];
  for (let first = 0; first < options.count; first += BLOCK) {
    const count = Math.min(BLOCK, options.count - first);
    const [old, now] = await fromBoth(options, [options.seed, first, count]);
    if (old.length !== count * 8 || now.length !== count * 8) throw new Error('a worker has not hashed all values');
    for (let at = 0; at < count; at++) {
      if (!old.subarray(at * 8, at * 8 + 8).equals(now.subarray(at * 8, at * 8 + 8))) different.push(first + at);
    }
  }
  console.log(`values: ${options.count} with seed ${options.seed}, ${different.length} recorded differently`);
  if (different.length === 0) return true;
  const classes = await classesOf(different.slice(0, LOOKED_AT_MAX), options);
  let isFine = different.length <= LOOKED_AT_MAX || [...classes.keys()].every(intendedReason);
  for (const [name, { count, index, old, now }] of [...classes].sort(([, a], [, b]) => b.count - a.count)) {
    const reason = intendedReason(name);
    if (reason === undefined) isFine = false;
    console.log(`\n${reason === undefined ? 'NOT INTENDED' : `intended (${reason})`}: ${name}, ${count} times`);
    console.log(
      `  value ${index}, ${CONFIGURATIONS[index % CONFIGURATIONS.length]}\n  old ${cut(old)}\n  new ${cut(now)}`,
    );
  }
  return isFine;
}

const intendedReason = (name) => INTENDED.find(({ of }) => of.test(name))?.reason;

const cut = (text = 'nothing') => (text.length > 300 ? `${text.slice(0, 300)}… (${text.length} characters)` : text);

/** Output of a worker for each of the two builds. */
async function fromBoth({ node, against, candidate }, args) {
  return Promise.all([against, candidate].map((folder) => outputOf(node, folder, args)));
}

function outputOf(node, folder, args) {
  const worker = join(import.meta.dirname, 'value-worker.mjs');
  const child = spawn(node, [worker, folder, ...args.map(String)], { stdio: ['ignore', 'pipe', 'inherit'] });
  const chunks = [];
  child.stdout.on('data', (chunk) => chunks.push(chunk));
  return new Promise((done, fail) => {
    child.on('error', fail);
    child.on('close', (code) =>
      code === 0 ? done(Buffer.concat(chunks)) : fail(new Error(`worker ended with ${code}`)),
    );
  });
}

/** The classes of the differences, each with its smallest example. */
async function classesOf(indexes, options) {
  const classes = new Map();
  const lines = await fromBoth(options, [options.seed, JSON.stringify(indexes), 0, '--show']);
  const [old, now] = lines.map((text) =>
    text
      .toString()
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(JSON.parse(line))),
  );
  for (const [at, index] of indexes.entries()) {
    const value = generatedValue(options.seed, index);
    const sources = { inputs: { v: value }, outputs: value, metadata: { v: value } };
    for (const found of differences(old[at], now[at], sources, 'record')) {
      const example = { count: 0, index, old: JSON.stringify(found.old), now: JSON.stringify(found.now) };
      const known = classes.get(found.name);
      const isSmaller = known === undefined || `${example.old}`.length < `${known.old}`.length;
      classes.set(found.name, { ...(isSmaller ? example : known), count: (known?.count ?? 0) + 1 });
    }
  }
  return classes;
}

/** The places at which two records differ, as deep as the two have the same keys. */
function* differences(old, now, source, field) {
  if (Object.is(old, now)) return;
  if (isTree(old) && isTree(now) && Array.isArray(old) === Array.isArray(now) && sameKeys(old, now)) {
    for (const key of Object.keys(old)) {
      yield* differences(old[key], now[key], below(source, key), field === 'record' ? key : field);
    }
  } else yield { old, now, name: `${field}: ${kindOf(source)}: ${shapeOf(old)} → ${shapeOf(now)}` };
}

const isTree = (value) => typeof value === 'object' && value !== null;

/** The order of the keys counts too. */
const sameKeys = (old, now) => JSON.stringify(Object.keys(old)) === JSON.stringify(Object.keys(now));

function below(source, key) {
  try {
    return source instanceof Map ? source.get(key) : source[key];
  } catch {
    return undefined;
  }
}

function kindOf(value) {
  if (!isTree(value)) return typeof value === 'object' ? 'null' : typeof value;
  try {
    return (
      Object.prototype.toString.call(value).slice(8, -1) + (typeof value.toJSON === 'function' ? ' with toJSON' : '')
    );
  } catch {
    return 'object that throws';
  }
}

function shapeOf(recorded) {
  if (Array.isArray(recorded)) return 'list';
  if (typeof recorded === 'object' && recorded !== null) return 'object';
  const marker =
    typeof recorded === 'string'
      ? /\[(?:Truncated|Circular|Redacted|Threw|[A-Z]\w*)\b[^\]]{0,30}\]?/.exec(recorded)
      : null;
  return marker === null ? typeof recorded : `text with ${marker[0].replace(/\d+/g, 'N')}`;
}
