import { posix } from 'node:path';
import { type Import, type SourceFacts, sourceFacts } from './source-facts.ts';

/** Source files by their path under `src/`: `delivery/queue.ts`. */
export type Sources = Readonly<Record<string, string>>;

const ROOT = 'runspan.ts';

/** The folders that each folder may import, also for types. The table has no cycle. */
export const MAY_IMPORT: Readonly<Record<string, readonly string[]>> = {
  base: [],
  platform: ['base'],
  config: ['base', 'platform'],
  payload: ['base', 'platform', 'config'],
  run: ['base', 'platform', 'config', 'payload'],
  services: ['base', 'payload'],
  http: ['base', 'platform', 'config'],
  delivery: ['base', 'platform', 'config', 'payload', 'run', 'http', 'otel'],
  instrument: ['base', 'platform', 'config', 'payload', 'run'],
  integrations: ['base', 'platform', 'config', 'payload', 'run', 'services', 'instrument'],
  otel: ['base', 'platform', 'config', 'payload', 'run', 'services'],
  register: ['base', 'platform', 'config', 'payload', 'run', 'instrument', 'integrations', 'replay'],
  clients: ['base', 'platform', 'config', 'payload', 'run', 'instrument', 'http'],
  receiver: ['base', 'platform', 'config', 'payload', 'run', 'services', 'otel'],
  langsmith: [...'base platform config payload run instrument integrations delivery clients'.split(' '), ROOT],
  replay: ['base', 'platform', 'config', 'payload', 'run', 'services', 'integrations', 'testing'],
  testing: ['base', 'platform', 'config', 'payload', 'run', 'clients', 'receiver'],
  viewer: ['base', 'payload', 'services', 'receiver'],
  cli: [
    ...'base platform config payload run services http delivery'.split(' '),
    ...'instrument integrations otel clients receiver testing replay'.split(' '),
    ROOT,
  ],
  [ROOT]: ['base', 'platform', 'config', 'run', 'http', 'delivery', 'instrument'],
  'index.ts': ['base', 'platform', 'config', 'payload', 'run', 'delivery', 'instrument', ROOT],
  'index.browser.ts': ['base', 'platform', 'config', 'payload', 'run', 'instrument'],
  'ai.ts': ['base', 'platform', 'config', 'run', 'integrations', ROOT],
  'anthropic.ts': ['base', 'platform', 'config', 'run', 'integrations', ROOT],
  'bedrock.ts': ['base', 'platform', 'config', 'run', 'integrations', ROOT],
  'claude-agent.ts': ['base', 'platform', 'config', 'run', 'integrations', ROOT],
  'langchain.ts': ['base', 'platform', 'config', 'run', 'integrations', ROOT],
  'langsmith.ts': ['base', 'platform', 'config', 'langsmith', ROOT],
  'mastra.ts': ['base', 'platform', 'config', 'run', 'integrations', ROOT],
  'mcp.ts': ['base', 'platform', 'config', 'run', 'integrations', ROOT],
  'openai.ts': ['base', 'platform', 'config', 'run', 'integrations', ROOT],
  'otel.ts': ['base', 'platform', 'config', 'run', 'otel', ROOT],
  'register.ts': ['register', ROOT],
  'clients.ts': ['base', 'platform', 'config', 'clients'],
  'receiver.ts': ['base', 'platform', 'config', 'run', 'otel', 'receiver', ROOT],
  'testing.ts': ['base', 'platform', 'config', 'payload', 'run', 'clients', 'receiver', 'testing', 'replay', ROOT],
};

/** The folders that each folder of a product may import. A folder that is not listed may import all of them. */
export const MAY_IMPORT_INSIDE: Readonly<Record<string, readonly string[]>> = {
  'receiver/domain': [],
  'receiver/filter': ['receiver/domain'],
  'receiver/store': ['receiver/domain', 'receiver/filter'],
  'receiver/http': ['receiver/domain', 'receiver/filter', 'receiver/store'],
  'receiver/ingest': ['receiver/domain', 'receiver/filter', 'receiver/store', 'receiver/http'],
  'receiver/api': ['receiver/domain', 'receiver/filter', 'receiver/store', 'receiver/http', 'receiver/ingest'],
};

/**
 * Imports that lead up the table, by file and imported folder, each with the change that removes it. `unusedExceptions`
 * reports an exception that no import needs.
 */
export const UPWARD: Readonly<Record<string, string>> = {
  'base/clock.ts → platform': 'the clock gets the functions of the runtime as options',
  'base/diagnostics.ts → platform': 'diagnostics get the environment and the console of the runtime as options',
  'base/guard.ts → platform': 'promises are recognised without the types of the runtime',
  'base/text.ts → platform': 'proxies are recognised without the types of the runtime',
  'config/options.ts → delivery': 'the spool reports its folder, and `onDrop` is a type of config/',
  'config/options.ts → http': 'one table describes options and variables, and http/ reads its proxies itself',
  'config/options.ts → payload': 'the composition root builds what is captured from the checked options',
  'config/options.ts → run': 'the composition root builds what is captured from the checked options',
  'config/service.ts → http': 'the sender reports what the functions for headers threw',
  'config/service.ts → payload': 'secret names and patterns are a table that headers and payloads share',
  'config/service.ts → run': 'the sender calls the functions for headers without a run',
};

/** Further rules if only a part of a folder may be imported. */
const ONLY: Readonly<Record<string, (target: string, found: Import) => boolean>> = {
  // The checks of options and the default limits, not the settings of delivery.
  'receiver → config': (target) => /^config\/(checker|limits)\.ts$/.test(target),
  // Secrets are masked again in a trace that is saved to be shared. Runs of other clients were never redacted.
  'receiver → payload': (target) => /^payload\/((fields|serialize|truncate|usage)\.ts|redaction\/)/.test(target),
  // Only the reader of unknown objects. The page has no payloads of its own.
  'viewer → payload': (target) => target === 'payload/fields.ts',
  'receiver → run': (target, found) =>
    found.typeOnly || /^run\/(encoded-run|fields|ids|page-path|record|time|calls\/same-call)\.ts$/.test(target),
  // Only the encoder of spans.
  'delivery → otel': (target) => target.startsWith('otel/otlp/'),
  // Only the mapping of attributes.
  'receiver → otel': (target) => !/(processor|exporter|propagator)\.ts$/.test(target),
  'viewer → receiver': (target, found) =>
    found.typeOnly ||
    target.startsWith('receiver/filter/') ||
    /^receiver\/domain\/(feedback|path-segment|query\/query-keys|run-view|trace\/(call-records|derived-tools))\.ts$/.test(
      target,
    ),
};

/** The build bundles these packages, so that users do not install them. Each may be imported in the folders listed. */
const BUNDLED: Readonly<Record<string, readonly string[]>> = {
  'eventsource-parser': ['clients'],
  // `runspan demo`.
  'examples:api-hook': ['cli'],
  'examples:demo': ['cli'],
  'examples:minimal-tracer': ['cli'],
  'examples:scripted-chat': ['cli'],
  '@commander-js/extra-typings': ['cli'],
  '@modelcontextprotocol/server': ['cli'],
  '@noble/hashes': ['platform'],
  '@preact/signals': ['viewer'],
  '@pydantic/genai-prices': ['receiver'],
  diff: ['viewer'],
  'form-data-encoder': ['delivery'],
  'highlight.js': ['viewer'],
  ignore: ['clients'],
  marked: ['viewer'],
  'modern-tar': ['clients'],
  'p-queue': ['delivery'],
  pbf: ['receiver'],
  preact: ['viewer'],
  uplot: ['viewer'],
  uuidv7: ['run'],
  valibot: ['cli', 'clients', 'receiver'],
  zod: ['cli'],
};

/** These packages are loaded at their first use, so that the import of the library is fast. */
const LOADED_LATE = ['undici', 'p-queue', 'form-data-encoder', 'pbf', 'modern-tar', 'ignore'];

/** Returns a line for each breach of the import rules. `packages` are installed with the package. */
export function breaches(sources: Sources, packages: readonly string[]): string[] {
  const facts = factsOf(sources);
  const found: string[] = [];
  for (const [path, file] of facts) {
    found.push(...breachesOfStyle(path, file));
    for (const one of file.imports) {
      const breach = one.specifier.startsWith('.')
        ? breachOfTable(path, one, facts)
        : breachOfPackages(path, one, packages);
      if (breach !== undefined) found.push(breach);
    }
  }
  return [...found, ...cycles(facts)];
}

export function unusedExceptions(sources: Sources): string[] {
  const facts = factsOf(sources);
  const needed = new Set(
    [...facts].flatMap(([path, { imports }]) =>
      imports.flatMap(({ specifier }) => {
        const target = resolve(path, specifier);
        return [placeOf(target), folderInside(posix.dirname(target))].map((to) => `${path} → ${to}`);
      }),
    ),
  );
  return Object.keys(UPWARD).filter((exception) => !needed.has(exception));
}

export function factsOf(sources: Sources): Map<string, SourceFacts> {
  return new Map(Object.entries(sources).map(([path, text]) => [path, sourceFacts(path, text)]));
}

function breachesOfStyle(path: string, file: SourceFacts): string[] {
  const found: string[] = [];
  if (file.awaitsAtTopLevel) found.push(`${path} awaits at top level`);
  if (isEntry(path)) {
    if (!file.onlyReexports) found.push(`${path} is an entry file and has more than export lines`);
    const bare = file.imports.filter((one) => one.sideEffect);
    if (bare.length > 1 || bare.some((one) => one.specifier !== `./${ROOT}`)) {
      found.push(`${path} imports more than ${ROOT} for its side effect`);
    }
  }
  return found;
}

function breachOfTable(path: string, found: Import, facts: ReadonlyMap<string, SourceFacts>): string | undefined {
  const target = resolve(path, found.specifier);
  // The build of the page fails if a style sheet does not exist.
  if (target.endsWith('.css') && placeOf(path) === 'viewer') return undefined;
  if (!facts.has(target)) return `${path} imports ${target}, which does not exist`;
  if (isEntry(target)) return `${path} imports the entry file ${target}`;
  const from = placeOf(path);
  const to = placeOf(target);
  if (from === to) return breachInside(path, target);
  const allowed = MAY_IMPORT[from];
  if (allowed === undefined) return `${path} is in no folder of the table`;
  if (allowed.includes(to) && (ONLY[`${from} → ${to}`]?.(target, found) ?? true)) return undefined;
  if (`${path} → ${to}` in UPWARD) return undefined;
  return `${path} imports ${target}`;
}

/** Returns the breach of an import between two folders of a product. */
function breachInside(path: string, target: string): string | undefined {
  const [from, to] = [posix.dirname(path), posix.dirname(target)].map(folderInside);
  const allowed = MAY_IMPORT_INSIDE[from ?? ''];
  if (allowed === undefined || to === from || allowed.includes(to ?? '') || `${path} → ${to}` in UPWARD)
    return undefined;
  return `${path} imports ${target}`;
}

/** `receiver/store/sqlite` is a part of `receiver/store`. */
function folderInside(folder: string): string {
  return folder.split('/', 2).join('/');
}

function breachOfPackages(path: string, { specifier, typeOnly, dynamic }: Import, packages: readonly string[]) {
  if (specifier.startsWith('node:')) return undefined;
  const name = specifier.split('/', specifier.startsWith('@') ? 2 : 1).join('/');
  if (!packages.includes(name) && !BUNDLED[name]?.includes(placeOf(path)))
    return `${path} imports ${specifier}, which package.json does not give to users`;
  if (LOADED_LATE.includes(name) && !typeOnly && !dynamic) return `${path} loads ${name} before the first send`;
  if (name === '@opentelemetry/api' && placeOf(path) !== 'otel') return `${path} imports ${name} outside otel/`;
  return undefined;
}

/** Returns a line for each cycle of imports, including imports of types. */
export function cycles(facts: ReadonlyMap<string, SourceFacts>): string[] {
  const found: string[] = [];
  const done = new Set<string>();
  const visit = (path: string, trail: readonly string[]): void => {
    if (trail.includes(path)) found.push([...trail.slice(trail.indexOf(path)), path].join(' → '));
    if (trail.includes(path) || done.has(path)) return;
    for (const one of facts.get(path)?.imports ?? []) {
      if (!one.specifier.startsWith('.')) continue;
      visit(resolve(path, one.specifier), [...trail, path]);
    }
    done.add(path);
  };
  for (const path of facts.keys()) visit(path, []);
  return found.map((cycle) => `cycle: ${cycle}`);
}

function resolve(from: string, specifier: string): string {
  return posix.join(posix.dirname(from), specifier);
}

/** Returns the folder of a file, or the file if it is in no folder. */
function placeOf(path: string): string {
  return path.split('/', 1)[0] ?? path;
}

function isEntry(path: string): boolean {
  return !path.includes('/') && path !== ROOT;
}
