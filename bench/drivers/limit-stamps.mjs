/** Ids (UUIDv7) and times (microseconds) for the hand-written baseline. Repeated parts are cached. */
import { randomFillSync } from 'node:crypto';

const HEX = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, '0'));
const pool = new Uint8Array(8_192);
let taken = pool.length;

const originUs = performance.timeOrigin * 1_000;
let lastUs = 0;

let second = 0;
let isoPrefix = '';
let compactPrefix = '';
let millisecond = 0;
let idPrefix = '';

/** Microseconds since 1970, strictly increasing. */
export function nowUs() {
  lastUs = Math.max(lastUs + 1, Math.floor(originUs + performance.now() * 1_000));
  return lastUs;
}

export function newId(us) {
  const ms = Math.floor(us / 1_000);
  if (ms !== millisecond) {
    millisecond = ms;
    const time = ms.toString(16).padStart(12, '0');
    idPrefix = `${time.slice(0, 8)}-${time.slice(8)}-7`;
  }
  if (taken + 10 > pool.length) {
    randomFillSync(pool);
    taken = 0;
  }
  const at = taken;
  taken += 10;
  const random = (offset) => HEX[pool[at + offset]];
  const variant = HEX[0x80 | (pool[at + 2] & 0x3f)];
  return `${idPrefix}${random(0)[0]}${random(1)}-${variant}${random(3)}-${random(4)}${random(5)}${random(6)}${random(7)}${random(8)}${random(9)}`;
}

/** `2026-11-20T07:22:40.123456Z` */
export function isoTime(us) {
  turnSecond(us);
  return `${isoPrefix}${micros(us)}Z`;
}

/** `20261120T072240123456Z` */
export function compactTime(us) {
  turnSecond(us);
  return `${compactPrefix}${micros(us)}Z`;
}

function turnSecond(us) {
  const now = Math.floor(us / 1_000_000);
  if (now === second) return;
  second = now;
  const iso = new Date(now * 1_000).toISOString();
  isoPrefix = iso.slice(0, 20);
  compactPrefix = iso.slice(0, 19).replaceAll(/[-:]/g, '');
}

function micros(us) {
  return (1_000_000 + (us % 1_000_000)).toString().slice(1);
}
