/**
 * What each weighs before it does anything: the time that its import adds to a start, the bytes of its files and those of all that
 * comes with it, and the number of packages. Each is installed in a project of its own, with what its pages say to install
 * beside it, and imported as the drivers do it.
 */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { bareEnvironment } from '../processes.mjs';
import { median } from '../statistics.mjs';
import { textTable } from '../text-table.mjs';
import { install, packSelf } from './installation.mjs';

const STARTS = 25;

const { dependencies: versions } = JSON.parse(readFileSync(new URL('../peers/package.json', import.meta.url), 'utf8'));
const OTEL = ['@opentelemetry/api', '@opentelemetry/context-async-hooks', '@opentelemetry/sdk-trace-base'];
const CONTENDERS = [
  { name: 'OpenTelemetry', packages: [...OTEL, '@opentelemetry/exporter-trace-otlp-http'] },
  { name: 'langfuse', packages: [...OTEL, '@langfuse/otel', '@langfuse/tracing'] },
  { name: 'langsmith', packages: ['langsmith'], imports: ['langsmith', 'langsmith/traceable'] },
  { name: 'braintrust', packages: ['braintrust', 'zod'], imports: ['braintrust'] },
];

export async function size() {
  const aside = mkdtempSync(join(tmpdir(), 'runspan-bench-'));
  const projects = [];
  try {
    const own = { name: 'runspan', packages: [packSelf(aside)], imports: ['runspan'] };
    for (const contender of [own, ...CONTENDERS]) projects.push(projectOf(contender));
    timeStarts(projects);
  } finally {
    for (const { installation } of projects) installation.remove();
    rmSync(aside, { recursive: true, force: true });
  }
  const figures = projects.map(({ name, installation: { packages, bytes }, emptyMs, overEmptyMs }) => ({
    name,
    importMs: median(overEmptyMs),
    emptyMs: median(emptyMs),
    installedMB: bytes / 1e6,
    packages,
  }));
  const rows = figures.map(({ name, importMs, installedMB, packages }) =>
    [name, importMs.toFixed(1), installedMB.toFixed(2), packages].map(String),
  );
  const table = textTable(['size and start', 'import, ms', 'installed, MB', 'packages'], rows);
  return { table: `${table}\n${STARTS} starts each, over those of an empty program between them, medians`, figures };
}

function projectOf({ name, packages, imports = packages }) {
  const installation = install(packages.map((one) => (versions[one] ? `${one}@${versions[one]}` : one)));
  writeFileSync(join(installation.folder, 'empty.js'), '');
  writeFileSync(join(installation.folder, 'start.js'), imports.map((one) => `import '${one}';\n`).join(''));
  return { name, installation, emptyMs: [], overEmptyMs: [] };
}

/** In turn, so that what else the machine does meets all of them alike; the first start of each fills the caches. */
function timeStarts(projects) {
  for (let start = 0; start <= STARTS; start++) {
    for (const { installation, emptyMs, overEmptyMs } of projects) {
      const ofEmpty = startMs(installation.folder, 'empty.js');
      const ofImport = startMs(installation.folder, 'start.js');
      if (start === 0) continue;
      emptyMs.push(ofEmpty);
      overEmptyMs.push(ofImport - ofEmpty);
    }
  }
}

function startMs(folder, file) {
  const options = { cwd: folder, encoding: 'utf8', env: bareEnvironment() };
  const atMs = performance.now();
  const { status, stderr } = spawnSync(process.execPath, [file], options);
  if (status !== 0) throw new Error(`${file} ended with ${status}: ${stderr}`);
  return performance.now() - atMs;
}
