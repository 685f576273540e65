/** `call-path-program.mjs <state>`: times every shape of function, bare and wrapped in turn, and sends the figures. */
import { configure, traceable, traced } from 'runspan';
import { recordRuns } from 'runspan/testing';
import { median } from '../statistics.mjs';

const ROUNDS = 9;
const ROUND_MS = 40;
const GENERATED = 10;

class Service {
  bare(a) {
    return a + 1;
  }
}
Service.prototype.wrapped = traced(Service.prototype.bare, { kind: 'method', name: 'wrapped' });
const service = new Service();

const sync = (a) => a + 1;
const asynchronous = async (a) => a + 1;
function* generator(count) {
  for (let at = 0; at < count; at++) yield at;
}
const drain = (stream) => {
  let sum = 0;
  for (const item of stream) sum += item;
  return sum;
};
const [tracedSync, tracedAsync, tracedGenerator] = [sync, asynchronous, generator].map((fn) => traceable(fn));

/** Each shape twice: how often `n` calls of it are made. */
const shapes = {
  'sync function': [loop(sync), loop(tracedSync)],
  'async function': [loopAsync(asynchronous), loopAsync(tracedAsync)],
  [`generator of ${GENERATED}`]: [
    loop(() => drain(generator(GENERATED))),
    loop(() => drain(tracedGenerator(GENERATED))),
  ],
  'decorated method': [loop((a) => service.bare(a)), loop((a) => service.wrapped(a))],
};

const recorder = setUp(process.argv[2]);
const figures = {};
for (const [shape, [bare, wrapped]] of Object.entries(shapes)) {
  const [bareNs, extraNs] = [[], []];
  for (let round = 0; round < ROUNDS; round++) {
    const each =
      round % 2 === 0 ? [await timed(bare), await timed(wrapped)] : [await timed(wrapped), await timed(bare)].reverse();
    bareNs.push(each[0]);
    extraNs.push(each[1] - each[0]);
  }
  figures[shape] = { bareNs: median(bareNs), extraNs: median(extraNs) };
}
process.send(figures);
process.disconnect();

function setUp(state) {
  if (state === 'traced') return recordRuns();
  configure(state === 'off' ? { tracing: false } : { endpoint: 'http://127.0.0.1:9', sampleRate: 0 });
  return undefined;
}

/** Nanoseconds of processor time per call, over as many calls as fit into a round: other programs do not count. */
async function timed(run) {
  const startMs = performance.now();
  const start = process.cpuUsage();
  let calls = 0;
  do {
    await run(1_000);
    calls += 1_000;
    recorder?.clear();
  } while (performance.now() - startMs < ROUND_MS);
  const { user, system } = process.cpuUsage(start);
  return ((user + system) * 1_000) / calls;
}

function loop(fn) {
  return (count) => {
    let sum = 0;
    for (let at = 0; at < count; at++) sum += fn(at);
    return sum;
  };
}

function loopAsync(fn) {
  return async (count) => {
    let sum = 0;
    for (let at = 0; at < count; at++) sum += await fn(at);
    return sum;
  };
}
