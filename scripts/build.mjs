#!/usr/bin/env node
// Compiles src/ to dist/. Declarations are compiled file by file. Modules are joined to few files, because each file
// takes part of a millisecond to load. The output replaces dist/ in one step, so that a failed build keeps the previous
// one and no program finds dist/ half empty.
//
// Each entry is built as an ES module and as a CommonJS module. Declarations that no entry needs are left out.
//
// The receiver's page goes to dist/viewer. All packages except undici and the optional peers are bundled. Those that one
// command needs, and the chat of `runspan demo`, are compressed in dist/chunks.
// dist/THIRD-PARTY-NOTICES.txt contains their licences.
//
// Modules that no entry exports but that tests and benchmarks use are in node_modules/.cache/modules, one file each.
//
// Does nothing if no source has changed since the last build. `--force` always builds.
import { deepStrictEqual } from 'node:assert';
import { spawnSync } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { basename, dirname, join, posix, relative, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import { runInThisContext } from 'node:vm';
import { brotliCompressSync } from 'node:zlib';
import commonjs from '@rollup/plugin-commonjs';
import { nodeResolve } from '@rollup/plugin-node-resolve';
import { rollup } from 'rollup';
import { parseAst } from 'rollup/parseAst';
import { transformWithEsbuild } from 'vite';
import { buildPage } from './build-page.mjs';
import { neededDeclarations } from './needed-declarations.mjs';
import { writeNotices } from './notices.mjs';
import { whenChanged } from './when-changed.mjs';

const root = fileURLToPath(new URL('..', import.meta.url));
const dist = join(root, 'dist');
const cache = join(root, 'node_modules', '.cache');
const aside = join(cache, `build-${process.pid}`);
const modules = join(aside, 'modules');
const declarations = join(aside, 'declarations');
const compiled = join(aside, 'new');
const tsc = join(dirname(createRequire(import.meta.url).resolve('typescript/package.json')), 'bin', 'tsc');

const files = [
  'src',
  'scripts/build.mjs',
  'scripts/build-page.mjs',
  'scripts/needed-declarations.mjs',
  'scripts/notices.mjs',
  'examples/chat/server',
  'examples/demo',
  'package.json',
  'package-lock.json',
  'tsconfig.json',
];
/** Stands for the path of dist/ until the code's location is known. */
const OF_DIST = 'dist-of-this-package:';
/**
 * Packages that the code loads with `require` at their first use. Both formats share one file, because these packages
 * are large.
 */
const LOADED_LATE = { '@pydantic/genai-prices': 'chunks/genai-prices.cjs' };

/** The examples that `runspan demo` runs: the demo, and the chat in it. */
const DEMO = join(root, 'examples', 'demo');
const CHAT = join(root, 'examples', 'chat', 'server');
/** The modules of the examples that the command loads. */
const EXAMPLES = {
  'examples:demo': join(DEMO, 'main.ts'),
  'examples:minimal-tracer': join(DEMO, 'minimal-tracer.ts'),
  'examples:api-hook': join(DEMO, 'api-hook.ts'),
  'examples:scripted-chat': join(CHAT, 'scripted.ts'),
};

/** Modules that do nothing when they are loaded, although their packages do not say so. */
const WITHOUT_SIDE_EFFECTS = /[\\/](examples[\\/]chat|node_modules[\\/](@langchain|@hono|hono))[\\/]/;

/** Modules of packages. Those of this package are in `node_modules/.cache`. */
const OF_PACKAGE = /[\\/]node_modules[\\/](?!\.cache)/;

/** Modules that need Node.js. On other runtimes, each of their functions throws an error. */
const ONLY_NODE = ['clients/control-plane/upload/source-archive.js', 'delivery/process-end.js', 'delivery/spool/'];

/**
 * How code is minified. Lines are short, because Node prints the line that threw an uncaught error, and test runners
 * print the lines around it.
 */
const MINIFIED = { minify: true, lineLimit: 120, legalComments: 'none', target: 'es2022', loader: 'js' };

await whenChanged({ name: 'build', inputs: files, outputs: ['dist', 'node_modules/.cache/modules'] }, compile);

/** Returns whether the code compiled. */
async function compile() {
  mkdirSync(aside, { recursive: true });
  try {
    // Only the declarations keep comments, which are a quarter of the code. The first run has already checked the
    // types.
    const withoutDeclarations = ['--declaration', 'false', '--isolatedDeclarations', 'false'];
    const isCompiled =
      runTsc('--outDir', declarations, '--emitDeclarationOnly') &&
      runTsc('--outDir', modules, '--removeComments', '--noCheck', ...withoutDeclarations);
    if (!isCompiled) {
      process.exitCode = 1;
      return false;
    }
    writeDeclarations();
    const bundled = [
      ...(await copyPackages()),
      ...(await copyApi()),
      ...(await joinModules()),
      ...(await joinModulesForCommonJS()),
      ...(await joinModulesForEdge()),
      ...(await joinModulesForBrowsers()),
      ...(await buildPage(join(compiled, 'viewer'))),
    ];
    writeNotices(join(compiled, 'THIRD-PARTY-NOTICES.txt'), bundled);
    // npm sets this bit at installation. Here it makes the command executable in the checkout.
    chmodSync(join(compiled, 'cli', 'main.js'), 0o755);
    replace(join(cache, 'modules'), modules);
    replace(dist, compiled);
    return true;
  } finally {
    rmSync(aside, { recursive: true, force: true });
  }
}

/** Whether the compiler reported no errors. */
function runTsc(...options) {
  return spawnSync(process.execPath, [tsc, ...options], { cwd: root, stdio: 'inherit' }).status === 0;
}

/** Copies these packages. Returns the ids of the bundled modules. */
async function copyPackages() {
  const { resolve } = createRequire(import.meta.url);
  mkdirSync(join(compiled, 'chunks'), { recursive: true });
  for (const [name, file] of Object.entries(LOADED_LATE)) {
    const { code } = await transformWithEsbuild(readFileSync(resolve(name), 'utf8'), file, MINIFIED);
    writeFileSync(join(compiled, file), withListAside(code, file));
  }
  return Object.keys(LOADED_LATE).map((name) => resolve(name));
}

/** Copies OpenTelemetry's API, an optional peer, for the demo. Returns the ids of the bundled modules. */
async function copyApi() {
  const plugins = [nodeResolve({ rootDir: root }), minifiedPackages(), withoutComments()];
  const api = await rollup({ input: '@opentelemetry/api', plugins });
  const { output } = await api.write({ file: join(compiled, 'chunks', 'opentelemetry-api.js') });
  return output.flatMap(({ moduleIds }) => moduleIds);
}

/** Writes the longest list of a module to a compressed file beside the module, because it is most of the module. */
function withListAside(code, file) {
  const { start, end } = parseAst(code)
    .body.flatMap(({ declarations = [] }) => declarations.map(({ init }) => init))
    .filter((init) => init?.type === 'ArrayExpression')
    .reduce((longest, list) => (list.end - list.start > longest.end - longest.start ? list : longest));
  const list = runInThisContext(code.slice(start, end));
  const json = JSON.stringify(list);
  deepStrictEqual(JSON.parse(json), list);
  const listFile = file.replace('.cjs', '.json.br');
  writeFileSync(join(compiled, listFile), brotliCompressSync(json));
  const read = `require('node:fs').readFileSync(__dirname+'/${basename(listFile)}')`;
  return `${code.slice(0, start)}JSON.parse(require('node:zlib').brotliDecompressSync(${read}))${code.slice(end)}`;
}

/** Loads the copies of these packages. */
function copiesOfPackages() {
  return {
    name: 'copies-of-packages',
    transform: (code) =>
      code.replace(/(createRequire\(import\.meta\.url\)\()'([^']+)'/g, (found, call, name) =>
        LOADED_LATE[name] === undefined ? found : `${call}'${OF_DIST}${LOADED_LATE[name]}'`,
      ),
  };
}

/**
 * Leaves out the validator of the Model Context Protocol's server, which is a third of it. The server validates only the
 * answers of users to forms, and the command shows no forms.
 */
function withoutSchemaValidator() {
  const id = '@modelcontextprotocol/server/_shims';
  return {
    name: 'without-schema-validator',
    resolveId: (specifier) => (specifier === id ? `\0${id}` : null),
    load: (path) =>
      path === `\0${id}`
        ? "export { default as process } from 'node:process'; export class DefaultJsonSchemaValidator {}"
        : null,
  };
}

/** Minifies bundled packages, which are otherwise a sixth of the installed files. */
function minifiedPackages() {
  return {
    name: 'minified-packages',
    // White space goes later, with the annotations by which unused code is found.
    transform: (code, id) =>
      OF_PACKAGE.test(id)
        ? transformWithEsbuild(code, id, { ...MINIFIED, minify: false, minifyIdentifiers: true, minifySyntax: true })
        : null,
  };
}

/** Returns the ids of the bundled modules. */
function joinModules() {
  const input = Object.fromEntries(entryFiles().map((path) => [path.slice(0, -'.js'.length), join(modules, path)]));
  const output = { chunkFileNames: 'chunks/[name].js', hoistTransitiveImports: false };
  return bundle(input, [ownFiles(), examplesOfThisCheckout()], output);
}

/**
 * Builds the same entries as CommonJS. `import()` becomes `require`, because Jest supports only `require` by default. Returns
 * the ids of the bundled modules.
 */
function joinModulesForCommonJS() {
  const input = Object.fromEntries(entryNames().map((name) => [name, join(modules, `${name}.js`)]));
  return bundle(input, [pathsOfModules(), ownFilesOfModules()], {
    format: 'cjs',
    dynamicImportInCjs: false,
    interop: 'auto',
    entryFileNames: '[name].cjs',
    chunkFileNames: 'chunks/[name].cjs',
  });
}

/** Bundles the entries with all packages that are not installed. Returns the ids of the modules that they contain. */
async function bundle(input, plugins, output) {
  const joined = await rollup({
    input,
    external: installedPackages(),
    // LangChain's modules import each other in circles, and TypeScript's decorators ask for a global `this`.
    onwarn: (warning, warn) =>
      ['CIRCULAR_DEPENDENCY', 'THIS_IS_UNDEFINED'].includes(warning.code) ? undefined : warn(warning),
    treeshake: { moduleSideEffects: (id) => !WITHOUT_SIDE_EFFECTS.test(id) },
    plugins: [
      ...plugins,
      copiesOfPackages(),
      ownFolders(),
      withoutSchemaValidator(),
      nodeResolve({ rootDir: root }),
      commonjs({ include: /node_modules\/(?!\.cache)/ }),
      minifiedPackages(),
      withoutComments(),
    ],
  });
  const { output: chunks } = await joined.write({ dir: compiled, manualChunks: coreChunks(false), ...output });
  return chunks.flatMap(({ modules: own = {} }) => Object.keys(own).filter((id) => own[id].renderedLength > 0));
}

/**
 * Compiles the modules of the demo. `runspan` is the code of this package. All other packages are those of this
 * checkout, whether or not the chat's own are installed.
 */
function examplesOfThisCheckout() {
  const isOfDemo = (id) => id.startsWith(CHAT) || id.startsWith(DEMO);
  return {
    name: 'examples-of-this-checkout',
    resolveId(specifier, importer = '') {
      if (Object.hasOwn(EXAMPLES, specifier)) return EXAMPLES[specifier];
      if (!isOfDemo(importer) || specifier.startsWith('.')) return null;
      const [isOwn, entry = 'index'] = /^runspan(?:\/(.+))?$/.exec(specifier) ?? [];
      if (isOwn !== undefined) return join(modules, `${entry}.js`);
      // The main entry loads all of LangChain's callbacks, to store their context.
      const name = specifier === '@langchain/langgraph' ? `${specifier}/web` : specifier;
      return this.resolve(name, join(root, 'package.json'), { skipSelf: true });
    },
    transform: (code, id) => (isOfDemo(id) ? transformWithEsbuild(code, id, { target: 'es2022', loader: 'ts' }) : null),
  };
}

/** Finds files by the module's path, even if a test environment has a `document`. */
function pathsOfModules() {
  return {
    name: 'paths-of-modules',
    resolveImportMeta: (property) => (property === 'url' ? "require('node:url').pathToFileURL(__filename).href" : null),
  };
}

/**
 * Builds the entries that have a `workerd` file, for runtimes with `fetch` but without Node's modules. `x.edge.js`
 * replaces `x.js`. Returns the ids of the bundled modules.
 */
function joinModulesForEdge() {
  const input = Object.fromEntries(entryFiles('workerd').map((path) => [posix.basename(path, '.js'), path]));
  return bundle(input, [variantFiles('edge'), globalsOfNode()], {
    dir: join(compiled, 'edge'),
    manualChunks: coreChunks(true),
    chunkFileNames: 'chunks/[name].js',
    hoistTransitiveImports: false,
  });
}

/** Imports substitutes for the Node globals that the modules use. */
function globalsOfNode() {
  const substitutes = join(modules, 'platform', 'globals.edge.js');
  return {
    name: 'globals-of-node',
    transform(code, path) {
      const names = ['Buffer', 'FinalizationRegistry', 'WeakRef'].filter((name) =>
        new RegExp(`\\b${name}\\b`).test(code),
      );
      if (path === substitutes || !path.startsWith(modules) || names.length === 0) return null;
      return `import { ${names.join(', ')} } from ${JSON.stringify(substitutes)};\n${code}`;
    },
  };
}

function failOnWarning(warning) {
  throw new Error(warning.message);
}

/**
 * Builds the entries that have a `browser` file. `x.browser.js` or `x.edge.js` replaces `x.js`. Importing any other
 * Node module fails the build. Each module stays a file, so that an application's bundler omits modules that a page
 * does not use. Returns the ids of the bundled modules.
 */
async function joinModulesForBrowsers() {
  const bundle = await rollup({
    input: Object.fromEntries(entryFiles('browser').map((path) => [posix.basename(path, '.js'), path])),
    plugins: [
      variantFiles('browser', 'edge'),
      globalsOfNode(),
      nodeResolve({ browser: true, rootDir: root }),
      withoutComments(),
    ],
    // No module has side effects that another module needs.
    treeshake: { moduleSideEffects: false },
    onwarn: failOnWarning,
  });
  const { output } = await bundle.write({
    dir: join(compiled, 'browser'),
    preserveModules: true,
    entryFileNames: ({ facadeModuleId: id }) => {
      if (!id.startsWith(modules)) return `${/.*\/node_modules\/(?:@[^/]+\/)?([^/]+)/.exec(id)[1]}.js`;
      return relative(modules, id)
        .split(sep)
        .join(posix.sep)
        .replace(/\.(browser|edge)\.js$/, '.js');
    },
    hoistTransitiveImports: false,
  });
  return output.flatMap(({ moduleIds = [] }) => moduleIds);
}

/** Returns a module whose exports, which have the names of those of the original, throw an error with their name. */
function withoutNode(path) {
  const names = parseAst(readFileSync(path, 'utf8')).body.flatMap(({ type, declaration }) => {
    if (type !== 'ExportNamedDeclaration' || declaration === null) return [];
    return (declaration.declarations ?? [declaration]).map(({ id }) => id.name);
  });
  const errors = JSON.stringify(join(modules, 'base', 'errors.js'));
  const stubOf = (name) =>
    `export function ${name}() { throw new RunspanError('RUNSPAN_INVALID_REQUEST', '${name} needs Node.js'); }`;
  return [`import { RunspanError } from ${errors};`, ...names.map(stubOf)].join('\n');
}

/**
 * Resolves an entry to its module, and each module to its first variant that exists. Modules that need Node.js are
 * replaced by `withoutNode`.
 */
function variantFiles(...kinds) {
  return {
    name: 'variant-files',
    load: (path) => (ONLY_NODE.some((name) => path.startsWith(join(modules, name))) ? withoutNode(path) : null),
    resolveId(specifier, importer) {
      if (importer !== undefined && (!specifier.startsWith('.') || !importer.startsWith(modules))) return null;
      const path =
        importer === undefined ? join(modules, posix.basename(specifier)) : join(dirname(importer), specifier);
      const variants = kinds.map((kind) => path.replace(/\.js$/, `.${kind}.js`));
      return variants.find((variant) => existsSync(variant) && variant !== importer) ?? path;
    },
  };
}

/**
 * Removes comments and shortens names, which keeps the installed package small. Only the ES modules for Node keep names
 * for stack traces, because bundlers shorten the names in the other ES modules anyway.
 */
function withoutComments() {
  return {
    name: 'without-comments',
    renderChunk: async (code, { fileName, moduleIds }, { dir, format }) => {
      const keepsNames = format === 'es' && dir === compiled && !moduleIds.every((id) => OF_PACKAGE.test(id));
      return (await transformWithEsbuild(keepsNames ? withNames(code) : code, fileName, MINIFIED)).code;
    },
  };
}

/**
 * Keeps the names of functions and classes, except inside functions, and of the members of classes. esbuild shortens no
 * name that a call of `eval` could use. Then it removes these calls, which never run.
 */
function withNames(code) {
  const call = 'if (false) eval("");';
  return `${code.replace(/^class .*\{$/gm, `$& static { ${call} }`)}\n${call}`;
}

/** Returns the packages that users install. All others are bundled. */
function installedPackages() {
  const { dependencies, peerDependencies } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  const names = Object.keys({ ...dependencies, ...peerDependencies });
  return (id) => id.startsWith('node:') || names.some((name) => id === name || id.startsWith(`${name}/`));
}

/**
 * Assigns modules to files: `runspan.js` contains delivery and tracing, `core.js` the modules that entries without
 * delivery also load, including all of `base/` and `payload/`, `services.js` the readers of services that spans and the
 * receiver need, and `integrations.js` all others and `integrations/`, which `register.js` loads. Fewer files load
 * faster. Rollup distributes all other modules. On edge runtimes, `register.js` loads few integrations.
 */
function coreChunks(isForEdge) {
  let chunks;
  return (id, { getModuleIds, getModuleInfo }) => {
    chunks ??= chunksOf([...getModuleIds()].map(getModuleInfo), isForEdge);
    return chunks.get(id);
  };
}

function chunksOf(infos, isForEdge) {
  const modulesOf = (...ids) => {
    const reached = new Set();
    const visit = (id) => {
      const info = infos.find((one) => one.id === id);
      if (info.isExternal || reached.has(id)) return;
      reached.add(id);
      info.importedIds.forEach(visit);
    };
    ids.forEach(visit);
    return reached;
  };
  const entries = infos.filter(({ isEntry }) => isEntry).map(({ id }) => id);
  const root = join(modules, 'runspan.js');
  const shared = modulesOf(...entries.filter((id) => !modulesOf(id).has(root)));
  const loaded = [...modulesOf(join(modules, 'index.js'))].filter((id) => !entries.includes(id));
  const idsIn = (folder) => infos.map(({ id }) => id).filter((id) => id.startsWith(join(modules, folder)));
  const ofSpans = modulesOf(...idsIn('otel'), ...idsIn('receiver'));
  const ofTests = idsIn('testing/').filter((id) => !id.startsWith(join(modules, 'testing', 'platform')));
  return new Map([
    ...ofTests.map((id) => [id, 'test-tools']),
    ...(isForEdge ? [] : [...idsIn('integrations'), ...idsIn('services')].map((id) => [id, 'integrations'])),
    ...idsIn('services').flatMap((id) => (ofSpans.has(id) ? [[id, 'services']] : [])),
    ...[...idsIn('base'), ...idsIn('payload')].map((id) => [id, 'core']),
    ...loaded.map((id) => [id, shared.has(id) ? 'core' : 'runspan']),
  ]);
}

/**
 * Puts a module that another references with `new URL('./x.js', import.meta.url)`, to run it in a thread, into its own
 * file.
 */
function ownFiles() {
  return {
    name: 'own-files',
    transform(code, path) {
      return code.replace(/new URL\('(\.[^']+\.js)', import\.meta\.url\)/g, (_, named) => {
        const reference = this.emitFile({ type: 'chunk', id: join(dirname(path), named) });
        return `new URL(import.meta.ROLLUP_FILE_URL_${reference})`;
      });
    },
  };
}

/** In the CommonJS build, uses the ES module's file for such a module, because a thread loads any format. */
function ownFilesOfModules() {
  return {
    name: 'own-files-of-modules',
    transform: (code) =>
      code.replace(
        /new URL\('\.\/([^'/]+\.js)', import\.meta\.url\)/g,
        (_, named) => `new URL('${OF_DIST}chunks/${named}', import.meta.url)`,
      ),
  };
}

/** Adjusts a `new URL('./x/', import.meta.url)` for a folder to the final location of the module's code. */
function ownFolders() {
  return {
    name: 'own-folders',
    transform(code, path) {
      const within = relative(modules, dirname(path)).split(sep).join(posix.sep);
      return code.replace(
        /new URL\('(\.[^']*\/)', import\.meta\.url\)/g,
        (_, named) => `new URL('${OF_DIST}${posix.join(within, named)}', import.meta.url)`,
      );
    },
    renderChunk: (code, { fileName }) =>
      code.replaceAll(OF_DIST, `${posix.relative(posix.dirname(fileName), '.') || '.'}/`),
  };
}

/**
 * Writes the declarations that the entries need as CommonJS. Each ES module entry's declarations re-export those of the
 * CommonJS entry, because only an ES module can import both formats.
 */
function writeDeclarations() {
  const read = (path) => readFileSync(join(declarations, `${path}.d.ts`), 'utf8').replace(/^import '.*';\n/gm, '');
  for (const [path, text] of neededDeclarations(entryNames(), read)) {
    mkdirSync(dirname(join(compiled, path)), { recursive: true });
    const renamed = text.replace(/(\bfrom |\bimport\()'(\.[^']+)\.ts'/g, "$1'$2.cjs'");
    writeFileSync(join(compiled, `${path}.d.cts`), renamed);
  }
  for (const name of entryNames()) writeFileSync(join(compiled, `${name}.d.ts`), `export * from './${name}.cjs';\n`);
}

/** Returns the package's exports under a condition, and its command, as paths within dist/. */
function entryFiles(condition = 'import') {
  const { exports, bin } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  const files = Object.values(exports).flatMap((entry) => entry[condition]?.import?.default ?? entry[condition] ?? []);
  if (condition === 'import') files.push(...Object.values(bin));
  return files.map((file) => relative('dist', file));
}

/** `index`, `otel`, … */
function entryNames() {
  return entryFiles('require').map((path) => posix.basename(path, '.cjs'));
}

function replace(folder, by) {
  const old = join(aside, 'old');
  rmSync(old, { recursive: true, force: true });
  if (existsSync(folder)) renameSync(folder, old);
  renameSync(by, folder);
}
