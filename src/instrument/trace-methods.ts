import { diagnostics } from '../base/diagnostics.ts';
import { guard } from '../base/guard.ts';
import type { TraceableOptions } from './plan.ts';
import { replaceMethod } from './restorable-method.ts';
import { traceable } from './traceable.ts';

/** The names of the methods of an object, or of the instances of a class. */
export type MethodName<Target> = Target extends abstract new (
  ...args: never[]
) => infer Instance
  ? FunctionName<Instance> | FunctionName<Target>
  : FunctionName<Target>;

/** The names of properties whose values are functions. */
export type FunctionName<Target> = {
  [Key in keyof Target]: Target[Key] extends CallableFunction ? Key : never;
}[keyof Target];

const PLACE = 'traceMethods';

/**
 * Traces chosen methods of a class or of an object at once, in place: every instance of the class has them, those made
 * already too. `methods` is a list of names, or an object that gives each method options of its own; `options` hold for
 * all of them. A run is named after its method. The target comes back; methods that are traced already are left as they are,
 * and what is no method is told in one line. Static methods are found behind those of the instances.
 */
export function traceMethods<Target extends object>(
  target: Target,
  methods: readonly MethodName<Target>[] | { readonly [Name in MethodName<Target>]?: TraceableOptions },
  options?: TraceableOptions,
): Target {
  const isTarget = typeof target === 'object' ? target !== null : typeof target === 'function';
  if (!isTarget || typeof methods !== 'object' || methods === null) {
    const expected = isTarget ? '`methods` to be a list of names or an object' : '`target` to be a class or an object';
    diagnostics.warnOnce(`${PLACE} ${expected}`, `${PLACE}(target, methods): expected ${expected}; nothing is traced.`);
    return target;
  }
  guard(PLACE, () => {
    const own = Array.isArray(methods) ? {} : (methods as Readonly<Record<PropertyKey, TraceableOptions>>);
    const names: readonly PropertyKey[] = Array.isArray(methods) ? methods : Reflect.ownKeys(methods);
    for (const name of names) trace(ownerOf(target, name), name, { ...options, ...own[name] });
  });
  return target;
}

function trace(owner: object, name: PropertyKey, options: TraceableOptions): void {
  const named = { name: (typeof name === 'symbol' ? name.description : String(name)) || 'anonymous', ...options };
  replaceMethod(PLACE, owner, name, (method) => traceable(method, named));
}

/** Where a method stands: on the prototype of a class, or on the class itself when it is static. */
function ownerOf(target: object, name: PropertyKey): object {
  if (typeof target !== 'function') return target;
  const prototype: unknown = target.prototype;
  return typeof prototype === 'object' && prototype !== null && name in prototype ? prototype : target;
}
