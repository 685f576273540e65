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
  'status 503': () => ({ script: { faults: times(3, { status: 503 }) } }),
  'status 500': () => ({ script: { faults: times(5, { status: 500 }) }, calls: 60 }),
  '429 with Retry-After': () => ({ script: { faults: [{ status: 429, headers: { 'retry-after': '1' } }] } }),
  '408 and 425': () => ({ script: { faults: [{ status: 408 }, { status: 425 }] } }),
  'reset connections': () => ({ script: { faults: times(3, { reset: true }) } }),
  'kept, then reset': () => ({
    script: { faults: times(2, { reset: true, stores: true }), rule: conflict },
    isSync: true,
  }),
  'kept, then 500': () => ({ script: { faults: [{ status: 500, stores: true }], rule: conflict }, isSync: true }),
  'a request that hangs': () => ({
    script: { faults: [{ hang: true }] },
    options: { limits: { requestTimeoutMs: 150 } },
  }),
  '401, then well': () => ({ script: { faults: [{ status: 401 }] } }),
  '302, then well': () => ({ script: { faults: [{ status: 302, headers: { location: '/elsewhere' } }] } }),
  '403 for ever': () => ({ script: { always: { status: 403 } }, isSync: true, run: recordInVain }),
  '503 for ever': () => ({ script: { always: { status: 503 } }, isSync: true, run: recordInVain }),
  '400 for some runs': () => ({ script: { rule: refusing(400) }, mark: ' poison', isSync: true, calls: 60 }),
  '422 for some runs': () => ({ script: { rule: refusing(422) }, mark: ' poison', isSync: true, calls: 60 }),
  '418 for a batch': () => ({ script: { faults: [{ status: 418 }] }, isSync: true }),
  '413 for large runs': () => ({ script: { rule: tooLarge }, isSync: true, calls: 60, run: recordLarge }),
  '413 for large batches': () => ({
    script: { rule: (_, { length }) => (length > 60_000 ? 413 : undefined) },
    isSync: true,
    calls: 90,
  }),
  'no multipart': (random) => ({ script: { rule: noMultipart(random.pick([404, 405, 501])) } }),
  'no multipart, and poison': () => ({
    script: { rule: (...args) => noMultipart(404)(...args) ?? refusing(422)(...args) },
    mark: ' poison',
    isSync: true,
  }),
  'no route at all': () => ({ script: { always: { status: 404 } }, isSync: true, run: recordInVain }),
  'multipart off by /info': () => ({
    script: { info: info({ batch_ingest_config: { use_multipart_endpoint: false } }) },
    run: afterInfo,
  }),
  'gzip by /info': () => ({ script: { info: info({ instance_flags: { gzip_body_enabled: true } }) }, run: afterInfo }),
  'gzip by /info, refused': () => ({
    script: { info: info({ instance_flags: { gzip_body_enabled: true } }), rule: refusingGzip },
    run: afterInfo,
  }),
  'small batches by /info': () => ({
    script: { info: info({ batch_ingest_config: { size_limit: 5, size_limit_bytes: 70_000 } }) },
    run: (world) => afterInfo(world, 5),
  }),
  'odd /info': (random) => ({
    script: { info: random.pick([{ status: 200, body: '<html>' }, { status: 500 }, info([])]) },
    run: afterInfo,
  }),
  'slow /info': () => ({ script: { info: { status: 404, delayMs: 300 } } }),
  'queue full': () => ({ script: { delayMs: 100 }, options: { limits: { queueRuns: 20 } }, isSync: true, calls: 60 }),
  'few open runs': () => ({ options: { limits: { openRuns: 4 } }, isSync: true }),
  'small payloads': () => ({ options: { limits: SMALL_PAYLOADS } }),
  'calls after shutdown': () => ({ isSync: true, run: recordTooLate }),
  spill: () => ({
    options: { durability: 'spill' },
    script: { always: { status: 503 } },
    isSync: true,
    run: recordAndRecover,
  }),
  'write-ahead': () => ({
    options: { durability: 'write-ahead' },
    script: { always: { status: 503 } },
    isSync: true,
    run: recordAndRecover,
  }),
  'write-ahead, well': () => ({ options: { durability: 'write-ahead' } }),
  'write-ahead, refused': () => ({
    options: { durability: 'write-ahead' },
    script: { rule: refusing(422) },
    mark: ' poison',
    isSync: true,
  }),
  'spill, 401': () => ({
    options: { durability: 'spill' },
    script: { always: { status: 401 } },
    isSync: true,
    run: recordAndRecover,
  }),
};

const SMALL_PAYLOADS = { payloadDepth: 3, payloadWidth: 5, payloadNodes: 30, payloadBytes: 200, attachmentBytes: 50 };

const times = (count, fault) => Array.from({ length: count }, () => ({ ...fault }));

const info = (body) => ({ status: 200, body: JSON.stringify(body) });

const refusing = (status) => (records) =>
  records.some(({ fields }) => fields.name.includes('poison')) ? status : undefined;

const noMultipart =
  (status) =>
  (_, { path }) =>
    path === '/runs/multipart' ? status : undefined;

const refusingGzip = (_, { headers }) => (headers['content-encoding'] === 'gzip' ? 415 : undefined);

const tooLarge = (records) => (records.some(({ bytes }) => bytes > TOO_LARGE_BYTES) ? 413 : undefined);

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
