// Compares what generated programs deliver with two builds: npm run test:net -- programs --against <folder>.
import { spawn } from 'node:child_process';
import { join } from 'node:path';

/**
 * Differences that are meant: the path of a difference is `<scenario>/<field>/…`, `old` and `now` are JSON text.
 *
 * @type {{ of: RegExp, when?: (old: string | undefined, now: string | undefined) => boolean, reason: string }[]}
 */
const INTENDED = [];

/**
 * Log lines that say the same in other words: the first that matches gives the line its name.
 *
 * @type {{ name: string, of: RegExp }[]}
 */
const LINES = [];

/** Programs that one process runs, so that a program that hangs costs few others. */
const SHARE = 50;
const SHARE_TIMEOUT_MS = 300_000;

/**
 * Compares programs, and returns whether every difference is intended. With `only`, one program with all that it did.
 *
 * @param {{ node: string, against: string, candidate: string, count: number, seed: number, only: number | undefined }} options
 */
export async function comparePrograms(options) {
  const indexes = options.only === undefined ? Array.from({ length: options.count }, (_, at) => at) : [options.only];
  const found = new Map();
  let runs = 0;
  let different = 0;
  for (let first = 0; first < indexes.length; first += SHARE) {
    const share = indexes.slice(first, first + SHARE);
    const [olds, nows] = await Promise.all(
      [options.against, options.candidate].map((folder) => results(folder, share, options)),
    );
    for (const [at, index] of share.entries()) {
      const [old, now] = [named(olds[at]), named(nows[at])];
      if (options.only !== undefined) console.log(JSON.stringify({ old, now }, undefined, 1));
      runs += Object.keys(old?.known ?? {}).length;
      const before = found.size;
      let isDifferent = false;
      for (const difference of differences(old, now, [old?.scenario ?? 'no result'])) {
        isDifferent = true;
        add(found, index, difference);
      }
      if (isDifferent || found.size > before) different++;
    }
  }
  console.log(
    `programs: ${indexes.length} with seed ${options.seed}, ${runs} runs delivered, ${different} programs differ`,
  );
  return report(found);
}

/** Groups differences by their place, without numbers. */
function add(found, index, { path, old, now }) {
  const place = path.join('/');
  const [oldText, nowText] = [JSON.stringify(old), JSON.stringify(now)];
  const intended = INTENDED.find(({ of, when }) => of.test(place) && (when?.(oldText, nowText) ?? true));
  const group = `${intended?.reason ?? ''}\n${place.replace(/\d+/g, 'N')}`;
  const known = found.get(group);
  if (known === undefined) found.set(group, { count: 1, index, place, old: oldText, now: nowText, intended });
  else known.count++;
}

function report(found) {
  const all = [...found.values()].sort((a, b) => b.count - a.count);
  for (const { count, index, place, old, now, intended } of all) {
    console.log(
      `\n${intended === undefined ? 'NOT INTENDED' : `intended (${intended.reason})`}: ${place}, ${count} times`,
    );
    console.log(`  program ${index}\n  old ${cut(old)}\n  new ${cut(now)}`);
  }
  return all.every(({ intended }) => intended !== undefined);
}

const cut = (text = 'nothing') => (text.length > 600 ? `${text.slice(0, 600)}… (${text.length} characters)` : text);

/** Gives log lines their names. */
function named(result) {
  if (result === undefined) return undefined;
  const name = (line) => LINES.find(({ of }) => of.test(line))?.name ?? line;
  return { ...result, lines: [...new Set(result.lines.map(name))].sort() };
}

/** The places at which two results differ. */
function* differences(old, now, path) {
  if (Object.is(old, now)) return;
  const areTrees = [old, now].every((each) => typeof each === 'object' && each !== null);
  if (!areTrees || Array.isArray(old) !== Array.isArray(now) || (Array.isArray(old) && old.length !== now.length)) {
    yield { path, old, now };
  } else {
    for (const key of new Set([...Object.keys(old), ...Object.keys(now)])) {
      yield* differences(old[key], now[key], [...path, key]);
    }
  }
}

/** One result for each index; undefined for those that a worker did not get to. */
function results(folder, indexes, { node, seed }) {
  const worker = join(import.meta.dirname, 'program-worker.mjs');
  const env = Object.fromEntries(
    Object.entries(process.env).filter(([name]) => !/^(RUNSPAN|LANGSMITH|LANGCHAIN|OTEL)_/.test(name)),
  );
  const args = [worker, folder, String(seed), JSON.stringify(indexes)];
  const child = spawn(node, args, { env, stdio: ['ignore', 'pipe', 'inherit'], timeout: SHARE_TIMEOUT_MS });
  let text = '';
  child.stdout.setEncoding('utf8').on('data', (chunk) => {
    text += chunk;
  });
  return new Promise((done, fail) => {
    child.on('error', fail);
    child.on('close', (code) => {
      const made = text
        .split('\n')
        .filter(Boolean)
        .map((line) => JSON.parse(line));
      if (made.length < indexes.length)
        console.log(`a worker of ${folder} ended with ${code} in program ${indexes[made.length]}`);
      done(indexes.map((index) => made.find((result) => result.index === index)));
    });
  });
}
