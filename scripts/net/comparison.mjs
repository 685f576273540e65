import { spawn } from 'node:child_process';
import { join } from 'node:path';

/** A worker that hangs is ended; its share takes seconds on a machine that has nothing else to do. */
const WORKER_TIMEOUT_MS = 600_000;

/**
 * Standard output of a worker of this folder, which gets the folder of a build as its first argument, and how it ended.
 *
 * @param {string} worker
 * @param {string} folder
 * @param {unknown[]} args
 * @param {{ node: string }} options
 * @returns {Promise<{ output: Buffer, code: number | null }>}
 */
export function workerOutput(worker, folder, args, { node }) {
  const env = Object.entries(process.env).filter(([name]) => !/^(RUNSPAN|LANGSMITH|LANGCHAIN|OTEL)_/.test(name));
  const child = spawn(node, [join(import.meta.dirname, worker), folder, ...args.map(String)], {
    env: Object.fromEntries(env),
    stdio: ['ignore', 'pipe', 'inherit'],
    timeout: WORKER_TIMEOUT_MS,
  });
  const chunks = [];
  child.stdout.on('data', (chunk) => chunks.push(chunk));
  return new Promise((done, fail) => {
    child.on('error', fail);
    child.on('close', (code) => done({ output: Buffer.concat(chunks), code }));
  });
}

/** The places at which two pieces of data differ. With `isOrdered` the order of keys counts too. */
export function* differences(old, now, isOrdered, path = []) {
  if (Object.is(old, now)) return;
  if (!isTree(old) || !isTree(now) || !haveSameShape(old, now, isOrdered)) yield { path, old, now };
  else {
    for (const key of new Set([...Object.keys(old), ...Object.keys(now)])) {
      yield* differences(old[key], now[key], isOrdered, [...path, key]);
    }
  }
}

export const isTree = (value) => typeof value === 'object' && value !== null;

function haveSameShape(old, now, isOrdered) {
  if (Array.isArray(old) || Array.isArray(now)) return old.length === now.length;
  return !isOrdered || JSON.stringify(Object.keys(old)) === JSON.stringify(Object.keys(now));
}

/** JSON text in JSON text was parsed to a level of 4 and a depth of 200. The rest was masked unparsed, or cut. */
export const NESTED_JSON = {
  of: /./,
  old: /(\\|%5C){16}|\[{60}|Truncated: too deep/,
  reason: 'JSON text in text is searched at every level and depth',
};

/** The end of bytes was left out before, so that other text had more room. */
export const BYTES = { of: /\/base(64|N)$/, reason: 'bytes are cut like other text' };

/** Differences by their kind, each with its smallest example, beside the table of those that are intended. */
export class Findings {
  #intended;
  #kinds = new Map();

  /**
   * @param {{ of: RegExp, old?: RegExp, now?: RegExp, reason: string }[]} intended  `of` matches the printed kind, `old` and `now` the
   *   JSON text of the values, or `nothing`
   */
  constructor(intended) {
    this.#intended = intended;
  }

  add(kind, example, old, now) {
    const found = { example, old: JSON.stringify(old) ?? 'nothing', now: JSON.stringify(now) ?? 'nothing', count: 1 };
    const row = this.#intended.find((each) => isRowFor(each, kind, found));
    const key = `${row?.reason}: ${kind}`;
    const known = this.#kinds.get(key);
    if (known !== undefined) found.count += known.count;
    const isSmaller = known === undefined || found.old.length + found.now.length < known.old.length + known.now.length;
    const { reason } = row ?? {};
    this.#kinds.set(key, { ...(isSmaller ? found : known), count: found.count, kind, reason });
  }

  /** Prints all kinds; false when one is not intended. */
  report() {
    let isFine = true;
    const found = [...this.#kinds.values()].sort((a, b) => b.count - a.count);
    for (const { kind, count, example, old, now, reason } of found) {
      isFine &&= reason !== undefined;
      console.log(`\n${reason === undefined ? 'NOT INTENDED' : `intended (${reason})`}: ${kind}, ${count} times`);
      const from = firstDifference(old, now) - CONTEXT;
      console.log(`  ${example}\n  old ${cut(old, from)}\n  new ${cut(now, from)}`);
    }
    return isFine;
  }
}

function isRowFor({ of, old, now }, kind, found) {
  return of.test(kind) && (old?.test(found.old) ?? true) && (now?.test(found.now) ?? true);
}

/** Characters of an example before its first difference, and in all. */
const CONTEXT = 100;
const SHOWN = 600;

function firstDifference(old, now) {
  let at = 0;
  while (at < old.length && old[at] === now[at]) at++;
  return at;
}

function cut(text, from) {
  const part = text.slice(Math.max(0, from), Math.max(0, from) + SHOWN);
  return part.length === text.length ? text : `${from > 0 ? '…' : ''}${part}… (${text.length} characters)`;
}
