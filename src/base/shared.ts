/**
 * State of the process that the ES modules and the CommonJS modules of one version share. A process may load both, for
 * example if a test runner or a bundler resolves `import` and `require` to different files.
 */
import { version } from './version.ts';

type Format = 'module' | 'commonjs';

/** The CommonJS build replaces this value. */
const FORMAT: Format = 'module';

const KEY = Symbol.for(`runspan.shared.${version}`);
const holder = globalThis as { [KEY]?: Record<Format, Map<string, unknown>> };
holder[KEY] ??= { module: new Map(), commonjs: new Map() };
const states = holder[KEY];

/**
 * Returns the state with this name of the other module format, if that format is loaded, else creates the state. Several
 * copies of the package in the same format keep separate states.
 */
export function shared<State>(name: string, create: () => State): State {
  const found = states[FORMAT === 'module' ? 'commonjs' : 'module'].get(name);
  const state = found === undefined ? create() : (found as State);
  states[FORMAT].set(name, state);
  return state;
}

/** The property by which all copies and versions of the package recognize a `RunSpanProcessor` or `RunSpanExporter`. */
export const SPAN_RECORDER: unique symbol = Symbol.for('runspan.span-recorder');

/** Makes `instanceof` also true for instances of these classes in the other module format. */
export function shareInstances(types: Readonly<Record<string, { readonly prototype: object }>>): void {
  for (const [name, type] of Object.entries(types)) {
    const brand = Symbol.for(`runspan.${name}.${version}`);
    Object.defineProperty(type.prototype, brand, { value: true });
    Object.defineProperty(type, Symbol.hasInstance, {
      // Subclasses inherit this function.
      value(this: unknown, value: unknown): boolean {
        if (this !== type) return Function.prototype[Symbol.hasInstance].call(this, value);
        return typeof value === 'object' && value !== null && brand in value;
      },
    });
  }
}
