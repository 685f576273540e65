import type { LoadFnOutput, LoadHookContext } from 'node:module';
import { guard } from '../base/guard.ts';
import { nodeModule } from '../base/node.ts';
import { type Fields, fieldsOf } from '../payload/fields.ts';

/** Records the calls of one SDK without changes to the application. */
export interface Instrumentation {
  /** The name in `RUNSPAN_INSTRUMENTATIONS`. */
  readonly name: string;
  /** Called once, before the application is loaded. The result stops the recording of model calls. */
  start(): (() => void) | undefined;
}

/** A change of a module that the application loads. */
export interface ModulePatch {
  /** The package and the path of the file in it, without extension: `openai/index`. */
  readonly module: string;
  /** The exports that `patch` replaces. */
  readonly replaced?: readonly string[];
  /** Changes the exported objects. If `replaced` is set, returns the new exports. */
  patch(exports: Fields): unknown;
}

type NextLoad = (url: string, context?: Partial<LoadHookContext>) => LoadFnOutput;

/** `@types/node` 20 does not have this function, which Node has since 22.15. */
type RegisterHooks = (hooks: {
  load(url: string, context: LoadHookContext, nextLoad: NextLoad): LoadFnOutput;
}) => unknown;

const PLACE = 'runspan/register';
/** The key of the function that patched modules call when they are loaded. */
const PATCH = Symbol.for('runspan.register.patch');
const CALL = "globalThis[Symbol.for('runspan.register.patch')]";
/** Marks the URL of an original module that another module with its URL replaces. */
const ORIGINAL = '?runspan-original';

const patches = new Map<string, ModulePatch>();

/** Applies a patch when the application loads the module. On Node before 22.15, does nothing. */
export function patchModule(patch: ModulePatch): undefined {
  const { registerHooks } = nodeModule('node:module') as { registerHooks?: RegisterHooks };
  if (registerHooks === undefined) return;
  if (patches.size === 0) {
    Object.defineProperty(globalThis, PATCH, { value: applyPatch });
    registerHooks({ load });
  }
  patches.set(patch.module, patch);
}

function applyPatch(module: string, exports: Fields): Fields {
  const result = guard(`${PLACE} ${module}`, () => patches.get(module)?.patch(exports));
  return patches.get(module)?.replaced === undefined ? exports : { ...exports, ...fieldsOf(result) };
}

function load(url: string, context: LoadHookContext, nextLoad: NextLoad): LoadFnOutput {
  const loaded = nextLoad(url, context);
  const patch = patchOf(url);
  return patch === undefined ? loaded : { ...loaded, ...guard(PLACE, () => patchedSource(url, patch, loaded)) };
}

/** Finds the patch by the part of the URL after the last `node_modules`. */
function patchOf(url: string): ModulePatch | undefined {
  const start = url.lastIndexOf('/node_modules/');
  if (start < 0) return undefined;
  return patches.get(url.slice(start + '/node_modules/'.length).replace(/\.[cm]?js$/, ''));
}

/** Adds a line to the source of the module that calls `applyPatch` at the end of the module. */
function patchedSource(url: string, patch: ModulePatch, { format, source }: LoadFnOutput): { source?: string } {
  const { module, replaced } = patch;
  const from = JSON.stringify(url);
  if (format === 'module' && replaced !== undefined) {
    const original = JSON.stringify(url + ORIGINAL);
    const names = replaced.join(', ');
    return {
      source: `export * from ${original};
import * as original from ${original};
const { ${names} } = ${CALL}('${module}', original);
export { ${names} };`,
    };
  }
  // Node reads the source of some CommonJS modules after this hook, and then calls the hook again.
  if (source === undefined || source === null) return {};
  const text = typeof source === 'string' ? source : new TextDecoder().decode(source);
  if (format === 'module') {
    return { source: `${text}\nimport * as __runspan from ${from};\n${CALL}('${module}', __runspan);` };
  }
  // The format of a required module is unknown if its package has no `type`.
  if (format !== 'commonjs' && typeof format === 'string') return {};
  const assigned = replaced === undefined ? '' : 'module.exports = ';
  return { source: `${text}\n;${assigned}${CALL}('${module}', module.exports);` };
}
