import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { build, type Metafile } from 'esbuild';
import { parseSync, Visitor } from 'oxc-parser';
import { expect, it } from 'vitest';
import { root } from '../support/folders.ts';
import { entries } from './repository.ts';

/** Names that occur only in modules of the receiver. */
const OF_THE_RECEIVER =
  /\b(createReceiver|MemoryStore|SqliteStore|ClickHouseStore|createRoutes|WorkerLink|Dicer|DatabaseSync)\b/;

/** Names that occur only in modules of the clients, and only in modules of delivery. */
const OF_THE_CLIENTS = /\b(serviceApi|submitFeedback|InvalidRequestError)\b/;
const OF_DELIVERY = /\bclass\s(DeliveryLoop|Ledger|Sender)\b/;

interface BuiltFile {
  readonly text: string;
  readonly imports: readonly string[];
  readonly lateImports: readonly string[];
  readonly exports: readonly string[];
}

const builtFiles = new Map<string, BuiltFile>();

/** Returns a file of dist/. Each file is parsed once. */
function built(path: string): BuiltFile {
  const known = builtFiles.get(path);
  if (known !== undefined) return known;
  const text = readFileSync(join(root, 'dist', path), 'utf8');
  const { staticImports, staticExports, dynamicImports } = parseSync(path, text).module;
  const exported = staticExports.flatMap(({ entries }) => entries);
  const file = {
    text,
    imports: [...staticImports, ...exported].flatMap(({ moduleRequest }) => moduleRequest?.value ?? []),
    lateImports: dynamicImports.map(({ moduleRequest: { start, end } }) => text.slice(start + 1, end - 1)),
    exports: exported.flatMap(({ exportName }) => exportName.name ?? []).sort(),
  };
  builtFiles.set(path, file);
  return file;
}

/** Returns the texts of a built file and its imports by their paths in dist/. With `isLate`, those of `import()` too. */
function loaded(path: string, isLate = false, found: Map<string, string> = new Map()): Map<string, string> {
  if (found.has(path)) return found;
  const { text, imports, lateImports } = built(path);
  found.set(path, text);
  for (const specifier of isLate ? [...imports, ...lateImports] : imports) {
    if (specifier.startsWith('.')) loaded(join(path, '..', specifier), isLate, found);
  }
  return found;
}

it.each(entries.filter((entry) => entry !== 'receiver'))('the entry %s does not load the receiver', (entry) => {
  const files = loaded(`${entry}.js`);
  expect([...files].filter(([, text]) => OF_THE_RECEIVER.test(text)).map(([path]) => path)).toEqual([]);
});

it('no import of register leads to the receiver, whose files a bundler of the application would have to find', () => {
  const files = loaded('register.js', true);
  expect([...files].filter(([, text]) => OF_THE_RECEIVER.test(text)).map(([path]) => path)).toEqual([]);
  expect([...loaded('testing.js', true).values()].some((text) => OF_THE_RECEIVER.test(text))).toBe(true);
});

it('the entry receiver loads the receiver, whose classes and their methods have names in stacks', () => {
  const text = [...loaded('receiver.js').values()].join('\n');
  expect(text).toMatch(OF_THE_RECEIVER);
  expect(text).toMatch(/\basync#\w{5,}\(/);
});

it.each(entries.filter((entry) => entry !== 'clients'))('the entry %s does not load the clients', (entry) => {
  const files = loaded(`${entry}.js`);
  expect([...files].filter(([, text]) => OF_THE_CLIENTS.test(text)).map(([path]) => path)).toEqual([]);
});

it('the entry clients does not load delivery, and loads the HTTP client at the first call', () => {
  const files = loaded('clients.js');
  const text = [...files.values()].join('\n');
  expect([OF_THE_CLIENTS.test(text), OF_DELIVERY.test(text)]).toEqual([true, false]);
  const imported = [...files.keys()].flatMap((path) => built(path).imports);
  expect(imported.filter((specifier) => !/^(\.|node:)/.test(specifier))).toEqual([]);
  expect(OF_DELIVERY.test([...loaded('index.js').values()].join('\n'))).toBe(true);
});

it('the import of runspan loads no literal with a Unicode class, because each slows down the import', () => {
  const literals = [...loaded('index.js')].flatMap(([path, text]) => literalsIn(path, text));
  expect(literals.length).toBeGreaterThan(50);
  expect(literals.filter((pattern) => /\\p\{/i.test(pattern))).toEqual([]);
});

function literalsIn(path: string, text: string): string[] {
  const patterns: string[] = [];
  new Visitor({
    Literal: (node) => {
      if ('regex' in node) patterns.push(node.regex.pattern);
    },
  }).visit(parseSync(path, text).program);
  return patterns;
}

it.each([
  ['index', 11],
  ['otel', 9],
  ['receiver', 15],
  ['testing', 6],
])('the entry %s loads at most %i files', (entry, files) => {
  expect(loaded(`${entry}.js`).size).toBeLessThanOrEqual(files);
});

/** Bundles an import of this package for browsers, or with other conditions. A module of Node fails the build. */
async function browserBundle(
  contents: string,
  conditions: string[] = [],
): Promise<{ text: string; metafile: Metafile }> {
  const { outputFiles, metafile, warnings } = await build({
    stdin: { contents, resolveDir: root },
    absWorkingDir: root,
    bundle: true,
    platform: 'browser',
    conditions,
    format: 'esm',
    minify: true,
    metafile: true,
    write: false,
    logLevel: 'silent',
  });
  expect(warnings).toEqual([]);
  return { text: outputFiles[0]?.text ?? '', metafile };
}

it('a bundle of the clients for browsers has no module and no global of Node', async () => {
  const { text, metafile } = await browserBundle(`export * from 'runspan/clients'`);
  const inputs = Object.keys(metafile.inputs).filter((path) => path !== '<stdin>');
  expect(inputs).toContain('dist/browser/http/fetch-client.js');
  expect(inputs.filter((path) => !path.startsWith('dist/browser/'))).toEqual([]);
  expect(
    text.match(/\bfrom\s*["'][^"']+["']|\bimport\s*\(|\brequire\(|\bprocess\.\w|\bBuffer\b|\bsetImmediate\(/g),
  ).toBeNull();
});

it('a bundle of the package for browsers has all its exports, and at most 10 KB, compressed', async () => {
  const { text, metafile } = await browserBundle(`export * from 'runspan'`);
  const names = Object.values(metafile.outputs).flatMap(({ exports }) => exports);
  expect(names.sort()).toEqual(built('index.js').exports);
  expect(gzipSync(text).length).toBeLessThanOrEqual(10_000);
});

it.each(['', '/ai', '/anthropic', '/bedrock', '/langchain', '/mastra', '/mcp', '/openai', '/register'])(
  'a bundle of runspan%s for Workers has no module and no global of Node, and all exports',
  async (path) => {
    const { text, metafile } = await browserBundle(`export * from 'runspan${path}'`, ['workerd', 'worker', 'browser']);
    const names = Object.values(metafile.outputs).flatMap(({ exports }) => exports);
    expect(names.sort()).toEqual(built(`${path.slice(1) || 'index'}.js`).exports);
    expect(text.match(/\bfrom\s*"[^"]+"|\bimport\s*\(|\brequire\(|[^.\w]process\.\w|[^.\w"]Buffer\./g)).toBeNull();
  },
);

it('the clients for browsers have the exports of the clients for Node', async () => {
  const { metafile } = await browserBundle(`export * from 'runspan/clients'`);
  const names = Object.values(metafile.outputs).flatMap(({ exports }) => exports);
  expect(names.sort()).toEqual(built('clients.js').exports);
});

it.each([
  ['AgentServer, submitFeedback', 22_600],
  ['submitFeedback', 10_405],
])('a page that imports { %s } loads at most %i bytes of the clients, compressed', async (names, bytesMax) => {
  const { text, metafile } = await browserBundle(`export { ${names} } from 'runspan/clients'`);
  expect(gzipSync(text).length).toBeLessThanOrEqual(bytesMax);
  expect(JSON.stringify(metafile.outputs)).not.toContain('control-plane');
});
