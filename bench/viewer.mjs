#!/usr/bin/env node
// Measures the page in Chromium with a receiver in this process: medians of ten.
import { performance } from 'node:perf_hooks';
import { chromium } from 'playwright-core';
import { createReceiver, DEFAULT_SCOPE, MemoryStore } from 'runspan/receiver';
import { chromiumOptions } from '../scripts/chromium.mjs';
import { median } from './statistics.mjs';

const TIMES = 10;
const VIEWPORT = { width: 1440, height: 900 };

const browser = await chromium.launch(chromiumOptions());
try {
  console.log(`medians of ${TIMES}, Chromium ${browser.version()}, ${VIEWPORT.width} × ${VIEWPORT.height}\n`);
  await tell('live tail: from the request that brings a run to its line', 'ms', 1_000, liveTail);
  await tell('trace of 10,000 runs: from its address to its tree', 'ms', 1_000, await opening(10_000));
  await tell('trace of 100,000 runs: from its address to its tree', 'ms', undefined, await opening(100_000));
  await tell('scrolling it: 95 % of frames within', 'ms', 25, await scrolling(100_000));
  await tell('payload of 20 MB: from the key to its first rows', 'ms', 1_000, await payload());
} finally {
  await browser.close();
}

/** Measures ten times and prints the median. */
async function tell(what, unit, target, measure) {
  const figures = [];
  for (let time = 0; time < TIMES; time++) figures.push(await measure());
  await measure.end?.();
  const figure = median(figures);
  const aim = target === undefined ? '' : `  target ${target} ${unit}${figure <= target ? '' : ', MISSED'}`;
  console.log(`${what.padEnd(58)}${figure.toFixed(1).padStart(8)} ${unit}${aim}`);
}

async function liveTail() {
  const receiver = await createReceiver();
  const page = await browser.newPage({ viewport: VIEWPORT });
  await page.goto(receiver.url);
  await page.getByText('live', { exact: true }).waitFor();
  const line = page.getByText('newcomer').waitFor();
  const startMs = performance.now();
  await fetch(`${receiver.url}/runs`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ id: idOf(1), name: 'newcomer', run_type: 'chain', inputs: {}, start_time: startOf(1) }),
  });
  await line;
  const tookMs = performance.now() - startMs;
  await page.close();
  await receiver.close();
  return tookMs;
}

async function opening(count) {
  const { receiver } = await receiverWith(trace(count));
  const measure = async () => {
    const page = await browser.newPage({ viewport: VIEWPORT });
    const startMs = performance.now();
    await page.goto(`${receiver.url}/?trace=${idOf(1)}`);
    await page.locator('.tree-row').first().waitFor();
    const tookMs = performance.now() - startMs;
    await page.close();
    return tookMs;
  };
  measure.end = () => receiver.close();
  return measure;
}

async function scrolling(count) {
  const { receiver } = await receiverWith(trace(count));
  const page = await browser.newPage({ viewport: VIEWPORT });
  await page.goto(`${receiver.url}/?trace=${idOf(1)}`);
  await page.locator('.tree-row').first().waitFor();
  const measure = () =>
    page.evaluate(async () => {
      const rows = document.querySelector('.tree-rows');
      const frames = [];
      rows.scrollTop = 0;
      let last = await new Promise(requestAnimationFrame);
      for (let frame = 0; frame < 120; frame++) {
        rows.scrollTop += 400;
        const now = await new Promise(requestAnimationFrame);
        frames.push(now - last);
        last = now;
      }
      return frames.sort((a, b) => a - b)[Math.floor(frames.length * 0.95)];
    });
  measure.end = async () => {
    await page.close();
    await receiver.close();
  };
  return measure;
}

async function payload() {
  const items = Array.from({ length: 20_000 }, (_, index) => ({ index, text: 'x'.repeat(1_000) }));
  const { receiver } = await receiverWith([run(1), { ...run(2, 1), inputs: { items } }]);
  const measure = async () => {
    const page = await browser.newPage({ viewport: VIEWPORT });
    await page.goto(`${receiver.url}/?trace=${idOf(1)}`);
    await page.locator('.tree-row').nth(1).waitFor();
    const startMs = performance.now();
    await page.keyboard.press('j');
    await page.getByText('items:').waitFor();
    const tookMs = performance.now() - startMs;
    await page.close();
    return tookMs;
  };
  measure.end = () => receiver.close();
  return measure;
}

async function receiverWith(runs) {
  const store = new MemoryStore({ runsMax: 1_000_000, bytesMax: 2 ** 31 });
  await store.apply(
    DEFAULT_SCOPE,
    runs.map(({ id, ...fields }) => ({ kind: 'post', id, fields, attachments: [] })),
  );
  return { receiver: await createReceiver({ store }) };
}

/** Returns a root run with steps, and calls below each step. */
function trace(count) {
  const steps = Math.ceil(Math.sqrt(count));
  return [
    run(1),
    ...Array.from({ length: count - 1 }, (_, index) => {
      const isStep = index % steps === 0;
      return run(index + 2, isStep ? 1 : index + 2 - (index % steps));
    }),
  ];
}

function run(index, parent) {
  return {
    id: idOf(index),
    trace_id: idOf(1),
    dotted_order: orderOf(index, parent),
    ...(parent === undefined ? {} : { parent_run_id: idOf(parent) }),
    name: `run ${index}`,
    run_type: ['chain', 'llm', 'tool'][index % 3],
    start_time: startOf(index),
    end_time: startOf(index + 3),
    inputs: {},
    outputs: {},
  };
}

function orderOf(index, parent) {
  const stamp = (one) => `${startOf(one).replace(/[-:.]/g, '')}${idOf(one)}`;
  if (parent === undefined) return stamp(index);
  return parent === 1 ? `${stamp(1)}.${stamp(index)}` : `${stamp(1)}.${stamp(parent)}.${stamp(index)}`;
}

function startOf(index) {
  return new Date(Date.parse('2026-11-20T07:00:00Z') + index).toISOString().replace('Z', '000Z');
}

function idOf(index) {
  return `01900000-0000-7000-8000-${index.toString(16).padStart(12, '0')}`;
}
