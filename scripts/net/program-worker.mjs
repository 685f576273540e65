// Runs generated programs with the package of a folder: node program-worker.mjs <folder> <seed> <list of indexes> [<folder>].
// With a second folder, its package is the one that recovers what the first has left on disk.
// Writes a line of JSON for each program: what its code saw, what the service knows, the ledger, drops and log lines.
import { mkdtempSync, rmSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { generatedProgram, performed } from './generated-program.mjs';
import { scenarioOf } from './scenarios.mjs';
import { scriptedService } from './scripted-service.mjs';

const [folder, seed, indexes, laterFolder = folder] = process.argv.slice(2);
const [first, later] = await Promise.all([folder, laterFolder].map(load));
// Values bring promises that reject.
process.on('unhandledRejection', () => {});

const LIMITS = { lingerMs: 20, retryDelayMs: 2, retryDelayMaxMs: 10, simpleRequestsPerSecond: 1_000, exitFlushMs: 200 };

/** Lines about one request: their number and that of their records is a matter of time. */
const OF_A_REQUEST = /^debug: \d+ records? sent over/;

/** A line about drops has those of one moment; `drops` has all. */
const COUNT_OF_DROPS = /\d+ runs? (was|were) dropped/;

for (const index of JSON.parse(indexes)) writeSync(1, `${JSON.stringify(await result(index))}\n`);
process.exit();

function load(of) {
  return import(pathToFileURL(join(resolve(of), 'dist/index.js')).href);
}

async function result(index) {
  const scenario = scenarioOf(index, Number(seed), first);
  const program = generatedProgram(Number(seed) * 1_000 + index, scenario.shape);
  const service = await scriptedService(scenario.script);
  const spoolDir = mkdtempSync(join(tmpdir(), 'runspan-net-'));
  const lines = [];
  const drops = [];
  const ledgers = [];
  let runspan;
  let exporter;
  const world = {
    service,
    /** Configures a build anew, as a process of its own would. */
    configure(build = later) {
      runspan = build;
      // What hides is of its build.
      const { options } = scenarioOf(index, Number(seed), build);
      exporter = build.configure({
        endpoint: service.url,
        apiKey: 'key',
        spoolDir,
        log: (level, message) => lines.push(`${level}: ${message}`),
        onDrop: (reason, { name, detail }) => drops.push([reason, name, detail]),
        ...options,
        limits: { ...LIMITS, ...options.limits },
      });
    },
    perform: async (other = program) => performed(other, runspan),
    flush: (timeoutMs = 10_000) => exporter.flush({ timeoutMs }),
    shutdown: async (timeoutMs = 2_000) => [await exporter.close({ timeoutMs }), ledgers.push(ledgerOf(exporter))][0],
    stats: () => exporter.stats(),
    async until(holds, limitMs = 5_000) {
      for (const endMs = Date.now() + limitMs; !holds() && Date.now() < endMs; ) await delay(5);
      return holds();
    },
  };
  world.configure(first);
  const outcome = await scenario.run(world);
  await world.shutdown();
  await service.close();
  rmSync(spoolDir, { recursive: true, force: true });
  const shown = steady(service, spoolDir);
  return {
    index,
    scenario: scenario.name,
    outcome: shown({ ...outcome, seen: outcome.seen?.sort((a, b) => (a[0] < b[0] ? -1 : 1)) }),
    ledgers,
    drops: shown(drops).sort((a, b) => (`${a}` < `${b}` ? -1 : 1)),
    lines: distinct(shown(lines)),
    irregular: distinct(shown(service.irregular)),
    known: Object.fromEntries(
      [...service.known.values()].map((run) => [steadyName(service, run), knowledge(shown, run)]),
    ),
    ...(scenario.isExact && { requests: shown(service.requests.map(exactRequest)) }),
  };
}

function distinct(lines) {
  const kept = lines
    .filter((line) => !OF_A_REQUEST.test(line))
    .map((line) => line.replace(COUNT_OF_DROPS, 'some runs were dropped'));
  return [...new Set(kept)].sort();
}

function ledgerOf(exporter) {
  const { requests, latency, backlog, lastError, ...counts } = exporter.stats();
  return { ...counts, hasError: lastError !== undefined, backlogBytes: backlog.bytes };
}

/** Replaces ids by the names of their runs, and times, ports and folders, in any data. */
function steady(service, spoolDir) {
  const replace = (text) =>
    text
      .replace(/[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g, (id) => {
        const run = service.known.get(id);
        return run === undefined ? `<id ${id[14]}>` : `<${run.name}>`;
      })
      .replace(/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z/g, '<time>')
      .replace(/\d{8}T\d{12}Z/g, '<stamp>')
      .replaceAll(service.url, '<service>')
      .replace(/--[\w-]*formdata[\w-]*|boundary=[\w-]+/gi, '<boundary>')
      .replaceAll(spoolDir, '<spool>')
      // The frames of a stack name our own files; in a body the line ends are escaped.
      .replace(/(?:(?:\\n|\n)\s+at [^\\\n"]*)+/g, '<frames>')
      .replace(/^Content-Length: \d+$/, 'Content-Length: <checked>');
  const shown = (data) => {
    if (typeof data === 'string') return replace(data);
    if (Array.isArray(data)) return data.map(shown);
    if (typeof data !== 'object' || data === null) return data;
    return Object.fromEntries(Object.entries(data).map(([key, value]) => [key, shown(value)]));
  };
  return shown;
}

function steadyName({ known }, { name, trace_id: root }) {
  return `${name} in ${known.get(root)?.name ?? 'no root'}`;
}

/** A run as the service knows it, with facts about its times. */
function knowledge(shown, { start_time: start, end_time: end, ...run }) {
  const stamp = start?.replace(/[-:.]/g, '');
  return shown({
    ...run,
    facts: [
      typeof start,
      typeof end,
      end === undefined || end >= start,
      run.dotted_order?.includes(`${stamp}${run.id}`),
    ],
  });
}

function exactRequest({ method, path, headers, length, parts }) {
  const { 'content-length': stated, host, ...others } = headers;
  return {
    method,
    path,
    headers: { ...others, isAsLongAsStated: stated === String(length), hasHost: host !== undefined },
    parts: parts?.map((part) => [...part.headers, part.content.toString('utf8')]),
  };
}
