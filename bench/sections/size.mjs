/**
 * Size and start: the time that an import adds to an empty program, and an installation's bytes and packages. Each
 * library is installed in an empty project, together with the packages that its documentation requires, and imported
 * like in its driver.
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

const peers = dependenciesOf('../peers/');
const langfuse = dependenciesOf('../peers/langfuse/');
const OTEL = Object.keys(peers).filter((name) => /^@opentelemetry\/(?!.*-proto)/.test(name));
const LANGSMITH = ['langsmith', 'langsmith/traceable'];
const CONTENDERS = [
  { name: 'OpenTelemetry', packages: pinned(OTEL), imports: OTEL },
  { name: 'langfuse', packages: pinned(Object.keys(langfuse), langfuse), imports: Object.keys(langfuse) },
  { name: 'langsmith', packages: pinned(['langsmith']), imports: LANGSMITH },
  { name: 'braintrust', packages: pinned(['braintrust', 'zod']), imports: ['braintrust'] },
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

function dependenciesOf(folder) {
  return JSON.parse(readFileSync(new URL(`${folder}package.json`, import.meta.url), 'utf8')).dependencies;
}

function pinned(names, versions = peers) {
  return names.map((name) => `${name}@${versions[name]}`);
}

function projectOf({ name, packages, imports }) {
  const installation = install(packages);
  writeFileSync(join(installation.folder, 'empty.js'), '');
  writeFileSync(join(installation.folder, 'start.js'), imports.map((one) => `import '${one}';\n`).join(''));
  return { name, installation, emptyMs: [], overEmptyMs: [] };
}

/** Interleaves the starts, so that other load on the machine affects all equally. Each first start fills the caches. */
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
