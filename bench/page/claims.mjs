/**
 * What the figures say, a line each with a link to the row that it is read from: of our two ways to trace, beside the limit and
 * the peers. A line whose figures are missing, or do not count, is left out.
 */
import { PEERS } from '../drivers.mjs';
import { labelOf } from './palette.mjs';
import { anchorOf, figureOf } from './results.mjs';
import { shown } from './scale.mjs';

export function claimsOf(results) {
  return [
    ...['traceable', 'processor'].map((own) => cpuClaim(results, own)),
    ...['traceable', 'processor'].map((own) => turnClaim(results, own)),
    loopClaim(results),
    memoryClaim(results),
    growthClaim(results),
    openLoopClaim(results),
    sizeClaim(results),
  ].filter((claim) => claim !== undefined);
}

function cpuClaim(results, own) {
  const us = figureOf(results, 'agent', own, 'cpuUsPerRun');
  const toLimit = figureOf(results, 'agent', own, 'cpuUsPerRun', 'toLimit');
  if (us === undefined || toLimit === undefined) return undefined;
  const peers = PEERS.flatMap((peer) => {
    const other = figureOf(results, 'agent', peer, 'cpuUsPerRun');
    return other === undefined ? [] : [`${timesText(us / other)} ${rowLink('agent', peer)}`];
  });
  const others = [`${shown(toLimit)} × the limit`, ...peers];
  return `A run of 3-run turns of 8 KB takes ${shown(us)} µs of CPU (${rowLink('agent', own)}): ${others.join(', ')}.`;
}

function turnClaim(results, own) {
  const p50 = figureOf(results, 'agent', own, 'turnP50Us', 'toLimit');
  const p99 = figureOf(results, 'agent', own, 'turnP99Us', 'toLimit');
  if (p50 === undefined || p99 === undefined) return undefined;
  return `A turn takes ${shown(p50)} × the limit's time at the median, ${shown(p99)} × at p99 (${rowLink('agent', own)}).`;
}

function loopClaim(results) {
  const ratio = figureOf(results, 'agent', 'traceable', 'loopDelayP99Ms', 'toLimit');
  if (ratio === undefined) return undefined;
  return `The event loop is delayed at p99 by ${shown(ratio)} × what it is by the limit (${rowLink('agent', 'traceable')}).`;
}

function memoryClaim(results) {
  const over = figureOf(results, 'agent', 'traceable', 'peakRssMiB', 'overUntraced');
  if (over === undefined) return undefined;
  return `At full rate the process peaks ${shown(over)} MiB over the untraced program (${rowLink('agent', 'traceable')}).`;
}

function growthClaim(results) {
  const few = figureOf(results, 'runs-10000', 'traceable', 'cpuUsPerRun', 'toLimit');
  const many = figureOf(results, 'runs-1000000', 'traceable', 'cpuUsPerRun', 'toLimit');
  if (few === undefined || many === undefined) return undefined;
  return `One of 1 000 000 runs costs ${shown(many)} × one by the limit, one of 10 000 ${shown(few)} × (${rowLink('runs-1000000', 'traceable')}).`;
}

function openLoopClaim(results) {
  const addedUs = figureOf(results, 'open-5000', 'traceable', 'turnP99Us', 'overUntraced');
  if (addedUs === undefined) return undefined;
  return `At 5 000 runs a second ${shown(addedUs / 1_000)} ms are added to a turn at p99 (${rowLink('open-5000', 'traceable')}).`;
}

function sizeClaim(results) {
  const own = results.cells.find(({ name }) => name === 'size')?.figures.find(({ name }) => name === 'runspan');
  if (own === undefined) return undefined;
  const { installedMB, packages, importMs } = own;
  return `Installed it is ${shown(installedMB)} MB in ${packages} packages, and its import adds ${shown(importMs)} ms to a start (${rowLink('size', 'runspan')}).`;
}

/** What is far below is easier to read as a part. */
function timesText(ratio) {
  return ratio < 0.25 ? `1/${Math.round(1 / ratio)} of` : `${shown(ratio)} ×`;
}

function rowLink(cell, driver) {
  return `[${labelOf(driver)}](#${anchorOf(cell, driver)})`;
}
