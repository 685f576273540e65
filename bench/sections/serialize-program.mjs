/**
 * What it costs to turn a payload into JSON text, with the limits and masks that hold by default, beside what the engine
 * needs for the bare text and what `safe-stable-stringify` needs. All in one process, as in a program that traces many
 * kinds of payloads: rounds in which every way does every payload, each round beginning with another way.
 */
import { performance } from 'node:perf_hooks';
import safeStableStringify from 'safe-stable-stringify';
import { defaultLimits } from '../../node_modules/.cache/modules/base/limits.js';
import { payloadRules } from '../../node_modules/.cache/modules/payload/limits.js';
import { defaultRedaction } from '../../node_modules/.cache/modules/payload/redact.js';
import { serialize } from '../../node_modules/.cache/modules/payload/serialize.js';
import { median } from '../statistics.mjs';
import { PAYLOADS } from './payloads.mjs';

const ROUNDS = Number(process.argv[2] ?? 60);
const WARMUP_ROUNDS = 30;
/** So much of a payload is made in one go that the clock can tell. */
const BATCH_MS = 2;

const rules = payloadRules(defaultLimits, defaultRedaction);
const ways = {
  'JSON.stringify': (value) => JSON.stringify(value),
  runspan: (value) => serialize(value, rules),
  'safe-stable-stringify': (value) => safeStableStringify(value),
};

const names = Object.keys(ways);
const cases = PAYLOADS.map(({ name, values, isJson }) => {
  const bytes = ways.runspan(values[0]).length;
  // Of a Map others write an empty object, which is no comparison.
  const isWhole = (way) => 2 * ways[way](values[0]).length > bytes;
  const contenders = names.filter((way) => (isJson || way !== 'JSON.stringify') && isWhole(way));
  const startMs = performance.now();
  for (const value of values) ways.runspan(value);
  const repeats = Math.max(1, Math.round(BATCH_MS / (performance.now() - startMs)));
  const samples = Object.fromEntries(contenders.map((way) => [way, []]));
  return { name, values, contenders, repeats, bytes, samples };
});

for (let round = 0; round < WARMUP_ROUNDS + ROUNDS; round++) {
  for (const one of cases) {
    const first = round % one.contenders.length;
    for (const way of [...one.contenders.slice(first), ...one.contenders.slice(0, first)]) {
      const us = timeUs(ways[way], one);
      if (round >= WARMUP_ROUNDS) one.samples[way].push(us);
    }
  }
}

const rows = cases.map(({ name, bytes, contenders, samples }) => {
  const us = Object.fromEntries(contenders.map((way) => [way, median(samples[way])]));
  const toNative = ratio(samples.runspan, samples['JSON.stringify']);
  const toSafe = ratio(samples.runspan, samples['safe-stable-stringify']);
  return { name, bytes, us, toNative, toSafe };
});
process.send(rows);
process.disconnect();

/** The text is read at one place, so that one that is still in pieces is put together within the time. */
function timeUs(way, { values, repeats }) {
  const startMs = performance.now();
  for (let repeat = 0; repeat < repeats; repeat++) for (const value of values) way(value).charCodeAt(1);
  return ((performance.now() - startMs) * 1_000) / repeats / values.length;
}

function ratio(own, other) {
  return other && median(own.map((us, at) => us / other[at]));
}
