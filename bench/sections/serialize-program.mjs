/**
 * Times `serialize` and `JSON.stringify` alternately with several kinds of payloads in one process, and sends the
 * figures.
 */
import { defaultLimits } from '../../node_modules/.cache/modules/config/limits.js';
import { defaultRedaction } from '../../node_modules/.cache/modules/payload/redaction/redact.js';
import { serialize } from '../../node_modules/.cache/modules/payload/serialize.js';
import { payloadRules } from '../../node_modules/.cache/modules/payload/truncate.js';
import { median } from '../statistics.mjs';
import { PAYLOADS } from './payloads.mjs';

const ROUNDS = 60;
const WARMUP_ROUNDS = 30;
/** Long enough for the resolution of the clock. */
const SAMPLE_MS = 2;

const rules = payloadRules(defaultLimits, defaultRedaction());
const native = (value) => JSON.stringify(value);
const own = (value) => serialize(value, rules);

const kinds = PAYLOADS.map((kind) => ({ ...kind, repeats: repeatsOf(kind.values), nativeUs: [], ownUs: [] }));
for (let round = 0; round < WARMUP_ROUNDS + ROUNDS; round++) {
  for (const kind of kinds) {
    const ways = [
      [native, kind.nativeUs],
      [own, kind.ownUs],
    ];
    for (const [way, samples] of round % 2 === 0 ? ways : ways.reverse()) {
      const us = microsecondsOf(way, kind);
      if (round >= WARMUP_ROUNDS) samples.push(us);
    }
  }
}
process.send(
  kinds.map(({ name, values, nativeUs, ownUs }) => ({
    name,
    characters: own(values[0]).length,
    nativeUs: median(nativeUs),
    ownUs: median(ownUs),
    toNative: median(ownUs.map((us, at) => us / nativeUs[at])),
  })),
);
process.disconnect();

function repeatsOf(values) {
  const startMs = performance.now();
  for (const value of values) own(value);
  return Math.max(1, Math.round(SAMPLE_MS / (performance.now() - startMs)));
}

/** Reads one character of each text, so that joining a text from pieces is included in the time. */
function microsecondsOf(way, { values, repeats }) {
  const startMs = performance.now();
  for (let repeat = 0; repeat < repeats; repeat++) for (const value of values) way(value).charCodeAt(1);
  return ((performance.now() - startMs) * 1_000) / repeats / values.length;
}
