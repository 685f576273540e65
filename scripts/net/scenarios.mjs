import { setTimeout as delay } from 'node:timers/promises';
import { generatedProgram } from './generated-program.mjs';
import { seeded } from './seeded.mjs';

/** Bytes of a record that the service of a scenario refuses. */
const TOO_LARGE_BYTES = 20_000;

/**
 * What surrounds a program: its service, the settings, and how it is run. The scenarios come by turns; an exact one
 * compares whole requests, all others what the service knows in the end.
 */
export function scenarioOf(index, seed, runspan) {
  const random = seeded(seed * 7_919 + index);
  const names = Object.keys(SCENARIOS);
  const name = index % 2 === 0 ? 'exact' : names[((index - 1) / 2) % names.length];
  const { isSync = false, calls = 25, ...scenario } = SCENARIOS[name](random, runspan);
  return {
    name,
    run: recordAndFlush,
    script: {},
    ...scenario,
    options: { ...settings(random, runspan), ...scenario.options },
    shape: { isSync: isSync || scenario.isExact === true, calls, mark: scenario.mark },
  };
}

/** Settings that change what is recorded. */
function settings(random, { redact, secretPatterns }) {
  return {
    ...(random.chance(0.1) && { hideInputs: true }),
    ...(random.chance(0.1) && { hideOutputs: true }),
    ...(random.chance(0.15) && { sampler: ({ name }) => name.length % 2 === 0 }),
    ...(random.chance(0.2) && { project: 'a project' }),
    ...(random.chance(0.1) && { projectId: '11111111-2222-4333-8444-555555555555' }),
    ...(random.chance(0.2) && { workspaceId: '99999999-2222-4333-8444-555555555555', headers: { 'x-more': 'yes' } }),
    ...(random.chance(0.1) && { redact: redact({ paths: ['inputs.**.a', 'metadata.depth'], keys: ['content'] }) }),
    ...(random.chance(0.1) && { redact: redact({ patterns: [...secretPatterns, /dolor/g], replace: '<hidden>' }) }),
  };
}

async function recordAndFlush(world) {
  const seen = await world.perform();
  return { seen, flushed: await world.flush() };
}

const SCENARIOS = {
  exact: (random) => ({ isExact: true, calls: 12, ...(random.chance(0.2) && { options: { limits: SMALL_PAYLOADS } }) }),
  plain: () => ({}),
  'plain, more runs': () => ({ calls: 300 }),
  slow: () => ({ script: { delayMs: 40 } }),
  'status 503': () => failing(3, { status: 503 }),
  'status 500': () => ({ ...failing(5, { status: 500 }), calls: 60 }),
  '429 with Retry-After': () => failing(1, { status: 429, headers: { 'retry-after': '1' } }),
  '408 and 425': () => ({ script: { faults: [{ status: 408 }, { status: 425 }] } }),
  'reset connections': () => failing(3, { reset: true }),
  'kept, then reset': () => kept(2, { reset: true }),
  'kept, then 500': () => kept(1, { status: 500 }),
  'a request that hangs': () => ({ ...failing(1, { hang: true }), options: { limits: { requestTimeoutMs: 800 } } }),
  '401, then well': () => failing(1, { status: 401 }),
  '302, then well': () => failing(1, { status: 302, headers: { location: '/elsewhere' } }),
  '403 for ever': () => down(403),
  '503 for ever': () => down(503),
  'no route at all': () => down(404),
  '400 for some runs': () => ({ ...poisoned(refusing(400)), calls: 60 }),
  '422 for some runs': () => ({ ...poisoned(refusing(422)), calls: 60 }),
  '418 for a batch': () => ({ ...failing(1, { status: 418 }), isSync: true }),
  '413 for large runs': () => ({ script: { rule: tooLarge }, isSync: true, calls: 60, run: recordLarge }),
  '413 for large batches': () => ({ script: { rule: tooMany }, isSync: true, calls: 90 }),
  'no multipart': (random) => ({ script: { rule: noMultipart(random.pick([404, 405, 501])) } }),
  'no multipart, and poison': () => poisoned((...args) => noMultipart(404)(...args) ?? refusing(422)(...args)),
  'multipart off by /info': () => informing({ batch_ingest_config: { use_multipart_endpoint: false } }),
  'gzip by /info': () => informing({ instance_flags: { gzip_body_enabled: true } }),
  'gzip by /info, refused': () => informing({ instance_flags: { gzip_body_enabled: true } }, refusingGzip),
  'small batches by /info': () => ({
    ...informing({ batch_ingest_config: { size_limit: 5, size_limit_bytes: 70_000 } }),
    run: (world) => afterInfo(world, 5),
  }),
  'odd /info': (random) => informing(random.pick(['<html>', [], null, { batch_ingest_config: 7, version: {} }])),
  'failing /info': () => ({ script: { info: { status: 500 } }, run: afterInfo }),
  'slow /info': () => ({ script: { info: { status: 404, delayMs: 300 } } }),
  'queue full': () => ({ script: { delayMs: 100 }, options: { limits: { queueRuns: 20 } }, isSync: true, calls: 60 }),
  'few open runs': () => ({ options: { limits: { openRuns: 4 } }, isSync: true }),
  'small payloads': () => ({ options: { limits: SMALL_PAYLOADS } }),
  'calls after shutdown': () => ({ isSync: true, run: recordTooLate }),
  spill: () => onDisk('spill', down(503, recordAndRecover)),
  'spill, 401': () => onDisk('spill', down(401, recordAndRecover)),
  'write-ahead': () => onDisk('write-ahead', down(503, recordAndRecover)),
  'write-ahead, well': () => onDisk('write-ahead', {}),
  'write-ahead, refused': () => onDisk('write-ahead', poisoned(refusing(422))),
};

const failing = (count, fault) => ({ script: { faults: Array.from({ length: count }, () => ({ ...fault })) } });

/** The service keeps the runs, and its response is lost. */
function kept(count, fault) {
  const { script } = failing(count, { ...fault, stores: true });
  return { script: { ...script, rule: conflict }, isSync: true };
}

const down = (status, run = recordInVain) => ({ script: { always: { status } }, isSync: true, run });

const poisoned = (rule) => ({ script: { rule }, mark: ' poison', isSync: true });

const informing = (body, rule) => ({
  script: { info: { status: 200, body: JSON.stringify(body) }, rule },
  run: afterInfo,
});

const onDisk = (durability, scenario) => ({ ...scenario, options: { durability } });

const SMALL_PAYLOADS = { payloadDepth: 3, payloadWidth: 5, payloadNodes: 30, payloadBytes: 200, attachmentBytes: 50 };

const refusing = (status) => (records) =>
  records.some(({ fields }) => fields.name.includes('poison')) ? status : undefined;

function noMultipart(status) {
  return (_, { path }) => (path === '/runs/multipart' ? status : undefined);
}

const refusingGzip = (_, { headers }) => (headers['content-encoding'] === 'gzip' ? 415 : undefined);

const tooLarge = (records) => (records.some(({ bytes }) => bytes > TOO_LARGE_BYTES) ? 413 : undefined);

const tooMany = (_, { length }) => (length > 60_000 ? 413 : undefined);

/** The service has one of the runs already. */
const conflict = (records, _, { known }) => (records.some(({ fields }) => known.has(fields.id)) ? 409 : undefined);

async function recordInVain(world) {
  const seen = await world.perform();
  const flushed = await world.flush(300);
  return { seen, flushed, closed: await world.shutdown(100) };
}

async function recordTooLate(world) {
  const seen = await world.perform();
  const closed = await world.shutdown();
  return { seen, closed, late: await world.perform() };
}

async function recordLarge(world) {
  const large = generatedProgram(1, { isSync: true, calls: 6 });
  for (const root of large.roots) {
    root.kind = 'call';
    root.name = `large ${root.name}`;
    root.value = () => ({ long: 'x'.repeat(TOO_LARGE_BYTES) });
  }
  const seen = await world.perform();
  return { seen: [...seen, ...(await world.perform(large))], flushed: await world.flush() };
}

/** Runs the program once the service has said how it wants to be called. */
async function afterInfo(world, runsMax = Number.POSITIVE_INFINITY) {
  await world.perform(generatedProgram(2, { isSync: true, calls: 1 }));
  await world.flush();
  await world.until(() => world.service.infoRequests > 0);
  await delay(30);
  const before = world.service.requests.length;
  const seen = await world.perform();
  const flushed = await world.flush();
  const used = world.service.requests.slice(before);
  const routes = used.map(({ method, path, headers }) =>
    [method, path.slice(0, 15), headers['content-encoding'] ?? 'plain'].join(' '),
  );
  return {
    seen,
    flushed,
    routes: [...new Set(routes)].sort(),
    isWithinLimit: used.every((request) => runsOf(request) <= runsMax),
  };
}

const runsOf = ({ parts }) => (parts === undefined ? 1 : new Set(parts.map(({ name }) => name.split('.')[1])).size);

/** Ends while the service is away; a later exporter delivers what is on disk. */
async function recordAndRecover(world) {
  const seen = await world.perform();
  await world.until(() => world.service.requests.length > 0);
  const closed = await world.shutdown(50);
  const left = [...world.service.known.keys()].length;
  world.service.script.always = undefined;
  world.configure();
  await world.perform(generatedProgram(3, { isSync: true, calls: 2 }));
  const isRecovered = await world.until(() => world.stats().recovered > 0 && world.stats().spooled === 0);
  return { seen, closed, left, isRecovered, flushed: await world.flush() };
}
