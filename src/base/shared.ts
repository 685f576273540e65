/**
 * State that all loaded copies of one package version share. A process may load several copies, for example one with
 * `import` and one with `require`.
 */
import { version } from './version.ts';

const KEY = Symbol.for(`runspan.shared.${version}`);
const holder = globalThis as { [KEY]?: Map<string, unknown> };
const states: Map<string, unknown> = holder[KEY] ?? new Map();
holder[KEY] = states;

/** Returns the shared state called `name`. The first call creates the state. */
export function shared<State>(name: string, create: () => State): State {
  if (!states.has(name)) states.set(name, create());
  return states.get(name) as State;
}

/** Marks a `RunSpanProcessor`. All copies and versions of the package recognize the mark. */
export const SPAN_RECORDER: unique symbol = Symbol.for('runspan.span-recorder');

/**
 * Marks a `fetch` function that the library has patched. `realm` is the global object of the library copy that patched
 * `fetch`.
 */
export const FETCH_RECORDER: unique symbol = Symbol.for('runspan.fetch-recorder');

export interface FetchRecorder {
  readonly realm: object;
  readonly original: unknown;
}

/** Makes `instanceof` return true for instances from another copy of the same package version. */
export function shareInstances(types: Readonly<Record<string, { readonly prototype: object }>>): void {
  for (const [name, type] of Object.entries(types)) {
    const brand = Symbol.for(`runspan.${name}.${version}`);
    Object.defineProperty(type.prototype, brand, { value: true });
    Object.defineProperty(type, Symbol.hasInstance, {
      // Subclasses inherit this function, so `this` may be a subclass.
      value(this: unknown, value: unknown): boolean {
        if (this !== type) return Function.prototype[Symbol.hasInstance].call(this, value);
        return typeof value === 'object' && value !== null && brand in value;
      },
    });
  }
}
