/**
 * Process state that all loaded copies of one version share. A process loads several copies if a bundler includes the
 * package in several files, or resolves `import` and `require` to different files.
 */
import { version } from './version.ts';

const KEY = Symbol.for(`runspan.shared.${version}`);
const holder = globalThis as { [KEY]?: Map<string, unknown> };
const states: Map<string, unknown> = holder[KEY] ?? new Map();
holder[KEY] = states;

/** Returns the state with this name, which the first copy that asks for it creates. */
export function shared<State>(name: string, create: () => State): State {
  if (!states.has(name)) states.set(name, create());
  return states.get(name) as State;
}

/** The property by which all copies and versions of the package recognize a `RunSpanProcessor` or `RunSpanExporter`. */
export const SPAN_RECORDER: unique symbol = Symbol.for('runspan.span-recorder');

/** The property of a `fetch` that a recorder has replaced. `realm` is the recorder's global object. */
export const FETCH_RECORDER: unique symbol = Symbol.for('runspan.fetch-recorder');

export interface FetchRecorder {
  readonly realm: object;
  readonly original: unknown;
}

/** Makes `instanceof` return true also for instances that another copy of this version created. */
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
