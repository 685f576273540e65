import type { LoadFnOutput, LoadHookContext } from 'node:module';
import { diagnostics } from '../base/diagnostics.ts';
import { guard } from '../base/guard.ts';
import { isJest } from '../config/environment.ts';
import { type Fields, fieldsOf } from '../payload/fields.ts';
import { nodeModule, runtime } from '../platform/node.ts';

/** Records the calls to one SDK without changes to the application. */
export interface Instrumentation {
  /** The name to use in `RUNSPAN_INSTRUMENTATIONS`. */
  readonly name: string;
  /** Called once, before the application is loaded. */
  start(): void;
}

export interface ModulePatch {
  /** The package name and the file path in the package, without extension. Example: `openai/index`. */
  readonly module: string;
  /** The request header that identifies model calls from the package. */
  readonly sentWith?: { readonly header: string; readonly value: RegExp };
  readonly replaced?: readonly string[];
  /** Modifies the exported objects. If `replaced` is set, returns the new exports. */
  patch(exports: Fields): unknown;
}

type NextLoad = (url: string, context?: Partial<LoadHookContext>) => LoadFnOutput;

type Compile = (source: unknown, path: unknown, ...rest: unknown[]) => unknown;

interface CommonJsModule {
  readonly filename?: unknown;
  _compile: Compile;
}

export interface ModuleHooks {
  load?(url: string, context: LoadHookContext, nextLoad: NextLoad): LoadFnOutput;
  resolve?(specifier: string, context: object, nextResolve: (specifier: string, context: object) => object): object;
}

/** `node:module`, with members that `@types/node` 20 does not have. */
export interface ModuleLoader {
  /** Available since Node 22.15. */
  readonly registerHooks?: (hooks: ModuleHooks) => { deregister(): void };
  readonly createRequire: typeof import('node:module').createRequire;
  readonly prototype: CommonJsModule;
}

const PLACE = 'runspan/register';
/** Global key of the function that patched modules call when they are loaded. */
const PATCH = Symbol.for('runspan.register.patch');
const CALL = "globalThis[Symbol.for('runspan.register.patch')]";
/** The exports at the end of a bundle. Only comments, such as the address of the source map, may follow. */
const EXPORTS =
  /export(?<![^;}\s][ \t]*export)\s*\{([\w$\s,]*)\}(?=(?:[;\s]|\/\*(?:[^*]|\*(?!\/))*\*\/|\/\/.*(?:[\r\n]|$))*$)/;

const patches = new Map<string, ModulePatch>();
const loadedModules = new Set<string>();
let hasHooks = false;

/**
 * Applies a patch when the application loads the module. On Node before 22.15, ES modules are not patched. Bun and Deno
 * do not support patches. Bun has no module hooks, and Deno's hooks do not receive the module format. In Jest test
 * files, no modules are patched, because Jest does not use Node's loader. A later patch of a module is applied after the
 * earlier ones.
 */
export function patchModule(patch: ModulePatch): void {
  if (runtime.runtime !== 'node' || isJest) return;
  if (patches.size === 0) {
    const { registerHooks, prototype } = nodeModule('node:module') as unknown as ModuleLoader;
    Object.defineProperty(globalThis, PATCH, { value: applyPatch });
    registerHooks?.({ load });
    hasHooks = registerHooks !== undefined;
    patchCompile(prototype);
  }
  const earlier = patches.get(patch.module);
  const patchBoth = (exports: Fields): unknown => {
    guard(`${PLACE} ${patch.module}`, () => earlier?.patch(exports));
    return patch.patch(exports);
  };
  patches.set(patch.module, { ...patch, patch: patchBoth });
}

export type Header = (name: string) => string | undefined;

/**
 * Returns the patch for the package that sends a request. Returns undefined if that package's module has been patched.
 */
export function patchMissedBy(header: Header): ModulePatch | undefined {
  if (!hasHooks) return undefined;
  return [...patches.values()].find(({ module, sentWith }) => {
    return !isLoaded(module) && sentWith?.value.test(header(sentWith.header) ?? '');
  });
}

export function isLoaded(module: string): boolean {
  return loadedModules.has(module);
}

function applyPatch(module: string, exports: Fields): Fields {
  loadedModules.add(module);
  return fieldsOf(guard(`${PLACE} ${module}`, () => patches.get(module)?.patch(exports)) ?? exports);
}

function load(url: string, context: LoadHookContext, nextLoad: NextLoad): LoadFnOutput {
  const loaded = nextLoad(url, context);
  const patch = patchOf(url);
  return patch === undefined ? loaded : { ...loaded, ...guard(PLACE, () => patchedSource(url, patch, loaded)) };
}

/**
 * Patches CommonJS modules that a loader such as tsx compiles. Such loaders call the module's `_compile` directly, so
 * the hook does not run. Modules without a patch keep the original `_compile`, so that stack traces do not change.
 */
function patchCompile(prototype: CommonJsModule): void {
  let { _compile: original } = prototype;
  const patched: Compile = function (this: unknown, source, path, ...rest) {
    const changed = guard(PLACE, () => patchedText(source, path));
    return Reflect.apply(original, this, [changed ?? source, path, ...rest]);
  };
  Object.defineProperty(prototype, '_compile', {
    configurable: true,
    enumerable: true,
    get(this: CommonJsModule): Compile {
      return guard(PLACE, () => patchOf(this.filename)) === undefined ? original : patched;
    },
    set(this: CommonJsModule, value: Compile) {
      if (this === prototype) original = value;
      else Object.defineProperty(this, '_compile', { configurable: true, enumerable: true, writable: true, value });
    },
  });
}

function patchedText(source: unknown, path: unknown): string | undefined {
  const patch = patchOf(path);
  if (patch === undefined || typeof source !== 'string' || source.includes(CALL)) return undefined;
  return patchedSource('', patch, { format: 'commonjs', source }).source;
}

/** Finds a patch by the part of the URL or path after the last `node_modules`. */
function patchOf(place: unknown): ModulePatch | undefined {
  const [, ...parts] = `${place}`.replaceAll('\\', '/').split('/node_modules/');
  return patches.get(parts.at(-1)?.replace(/\.[cm]?js$/, '') ?? '');
}

/** Replaces exports of a bundle. Calls inside the bundle and its URL stay the same. Other modules are not changed. */
function withExports(url: string, { module, replaced = [] }: ModulePatch, text: string): string {
  const changed = text.replace(EXPORTS, (_, list: string) => {
    const entries = list.matchAll(/([\w$]+)(?:\s+as\s+([\w$]+))?/g);
    const exported = Array.from(entries, ([, local = '', name = local]) => ({ name, local }));
    const own = (name: string): string => `__runspan_${name}`;
    const found = exported.flatMap(({ name }) => (replaced.includes(name) ? [`${name}: ${own(name)}`] : []));
    // In a cycle of imports, an export may have no value yet.
    const originals = exported.map(({ name, local }) => `get ${name}() { return ${local}; }`);
    const names = exported.map(({ name, local }) => `${replaced.includes(name) ? own(name) : local} as ${name}`);
    return `const { ${found} } = ${CALL}('${module}', { ${originals} });\nexport { ${names} }`;
  });
  if (changed.includes('__runspan_')) return changed;
  loadedModules.add(module);
  const line = `the exports of ${url} have an unknown form, so its steps may be missing; wrap the SDK with runspan/ai or runspan/claude-agent`;
  diagnostics.warnOnce(line, line);
  return text;
}

function patchedSource(url: string, patch: ModulePatch, { format, source }: LoadFnOutput): { source?: string } {
  const { module, replaced } = patch;
  // For some CommonJS modules, Node reads the source after this hook and then calls the hook again.
  if (source === undefined || source === null) return {};
  const text = typeof source === 'string' ? source : new TextDecoder().decode(source);
  if (format === 'module' && replaced !== undefined) return { source: withExports(url, patch, text) };
  if (format === 'module') {
    return { source: `${text}\nimport * as __runspan from ${JSON.stringify(url)};\n${CALL}('${module}', __runspan);` };
  }
  // If a package has no `type`, the format of a required module is unknown.
  if (format !== 'commonjs' && typeof format === 'string') return {};
  const assigned = replaced === undefined ? '' : 'module.exports = ';
  return { source: `${text}\n;${assigned}${CALL}('${module}', module.exports);` };
}
