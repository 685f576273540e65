import { diagnostics } from '../base/diagnostics.ts';
import { guard } from '../base/guard.ts';
import { shared } from '../base/shared.ts';
import type { TraceableOptions } from './plan.ts';
import { defineOwn, type Method } from './results/observer.ts';
import { traceable } from './traceable.ts';

/**
 * The `@traced` decorator. Supports methods, static and `#private` methods, getters, setters, accessors and fields that
 * hold a function. With `experimentalDecorators`, the decorator supports methods, static methods, getters and setters.
 */
export interface TracedDecorator {
  <This, Value extends CallableFunction>(value: Value, context: ClassMethodDecoratorContext<This>): Value;
  <This, Value>(value: (this: This) => Value, context: ClassGetterDecoratorContext<This, Value>): (this: This) => Value;
  <This, Value>(
    value: (this: This, value: Value) => void,
    context: ClassSetterDecoratorContext<This, Value>,
  ): (this: This, value: Value) => void;
  <This, Value>(
    value: ClassAccessorDecoratorTarget<This, Value>,
    context: ClassAccessorDecoratorContext<This, Value>,
  ): ClassAccessorDecoratorResult<This, Value>;
  <This, Value>(value: undefined, context: ClassFieldDecoratorContext<This, Value>): (initial: Value) => Value;
  (target: object, key: string | symbol, descriptor: PropertyDescriptor): void;
}

/** The type of `traced`: a decorator, or a function that takes options and returns a decorator. */
// The decorator type must come first: field decorators receive `undefined`, which is also valid as options.
export type Traced = TracedDecorator & ((options?: TraceableOptions) => TracedDecorator);

/**
 * Traces a method, accessor or function field of a class. Use `@traced` or `@traced({ name, runType, … })`. By default,
 * each run is named after the class member. Works with standard decorators and TypeScript's `experimentalDecorators`.
 * If a class or an unsupported member is decorated, `traced` logs a warning and changes nothing.
 */
export const traced: Traced = ((...args: unknown[]): unknown => {
  const isDecorating = args.length > 1;
  if (isDecorating) return guard('@traced', () => decorate({}, args));
  const [options] = args;
  if (typeof options !== 'function') return (...member: unknown[]) => guard('@traced', () => decorate(options, member));
  // A class decorator's return value replaces the class, so `traced` returns the class itself.
  refuse('a class or function by itself');
  return options;
}) as Traced;

function decorate(options: unknown, [value, context, descriptor]: unknown[]): unknown {
  const kind = (context as DecoratorContext | undefined)?.kind;
  if (kind === undefined) return decorateLegacy(options, context as string | symbol, descriptor);
  const named = withName(options, (context as DecoratorContext).name);
  switch (kind) {
    case 'method':
    case 'getter':
    case 'setter':
      return traceable(value as (...args: unknown[]) => unknown, named);
    case 'accessor': {
      const { get, set } = value as ClassAccessorDecoratorTarget<unknown, unknown>;
      return { get: traceable(get, named), set: traceable(set, named) };
    }
    case 'field':
      return (initial: unknown) => {
        if (typeof initial === 'function') return traceable(initial as (...args: unknown[]) => unknown, named);
        refuse(`a field that holds ${initial === null ? 'null' : typeof initial}`);
        return initial;
      };
    default:
      refuse(`a ${kind}`);
  }
}

function decorateLegacy(options: unknown, key: string | symbol, descriptor: unknown): void {
  if (typeof descriptor !== 'object' || descriptor === null) {
    refuse('something other than a method or accessor');
    return;
  }
  const named = withName(options, key);
  const member = descriptor as PropertyDescriptor;
  if (typeof member.value === 'function') member.value = traceable(member.value, named);
  if (member.get !== undefined) member.get = traceable(member.get, named);
  if (member.set !== undefined) member.set = traceable(member.set, named);
}

/** Adds the member's name to the options. Returns invalid options unchanged, because `traceable` reports them. */
function withName(options: unknown, key: string | symbol | undefined): TraceableOptions {
  if (options !== undefined && (typeof options !== 'object' || options === null)) return options as TraceableOptions;
  const name = (typeof key === 'symbol' ? key.description : key) || 'anonymous';
  return guard('@traced', () => ({ name, ...options })) ?? { name };
}

function refuse(what: string): void {
  diagnostics.warnOnce(
    `traced ${what}`,
    `@traced: expected a method, accessor or function field, got ${what}; the member is not traced.`,
  );
}

/** Names of an object's methods, or of a class's static and instance methods. */
export type MethodName<Target> = Target extends abstract new (
  ...args: never[]
) => infer Instance
  ? FunctionName<Instance> | FunctionName<Target>
  : FunctionName<Target>;

/** Names of properties whose values are functions. */
export type FunctionName<Target> = {
  [Key in keyof Target]: Target[Key] extends CallableFunction ? Key : never;
}[keyof Target];

const OPERATION = 'traceMethods';

/**
 * Replaces methods of an object or class with traced methods. For a class, `methods` can name static and instance
 * methods. Returns the target. `methods` is an array of names, or an object that maps method names to options.
 * `options` apply to all methods. Each run is named after its method. If a static and an instance method have the same
 * name, only the instance method is traced. Methods that `traceMethods` has already traced are left unchanged. Logs a
 * warning if a method does not exist.
 */
export function traceMethods<Target extends object>(
  target: Target,
  methods: readonly MethodName<Target>[] | { readonly [Name in MethodName<Target>]?: TraceableOptions },
  options?: TraceableOptions,
): Target {
  const isTarget = typeof target === 'object' ? target !== null : typeof target === 'function';
  if (!isTarget || typeof methods !== 'object' || methods === null) {
    const expected = isTarget ? '`methods` to be a list of names or an object' : '`target` to be a class or an object';
    diagnostics.warnOnce(
      `${OPERATION} ${expected}`,
      `${OPERATION}(target, methods): expected ${expected}; nothing is traced.`,
    );
    return target;
  }
  guard(OPERATION, () => {
    const own = Array.isArray(methods) ? {} : (methods as Readonly<Record<PropertyKey, TraceableOptions>>);
    const names: readonly PropertyKey[] = Array.isArray(methods) ? methods : Reflect.ownKeys(methods);
    for (const name of names) trace(ownerOf(target, name), name, { ...options, ...own[name] });
  });
  return target;
}

function trace(owner: object, name: PropertyKey, options: TraceableOptions): void {
  const named = { name: (typeof name === 'symbol' ? name.description : String(name)) || 'anonymous', ...options };
  replaceMethod(OPERATION, owner, name, (method) => traceable(method, named));
}

function ownerOf(target: object, name: PropertyKey): object {
  if (typeof target !== 'function') return target;
  const prototype: unknown = target.prototype;
  return typeof prototype === 'object' && prototype !== null && name in prototype ? prototype : target;
}

interface Replacement {
  readonly wrapper: unknown;
  readonly original: unknown;
  /** Descriptor of the original property, or undefined if the object inherited the method. */
  readonly before: PropertyDescriptor | undefined;
}

const replacements: WeakMap<object, Map<PropertyKey, Replacement>> = shared('replacements', () => new WeakMap());

/**
 * Replaces a method with `wrap(method)` on the object itself, so the object keeps its class and private fields. If
 * other code replaced the wrapper, the method is not wrapped again: that code may still call the wrapper.
 */
export function replaceMethod(
  place: string,
  owner: object,
  key: PropertyKey,
  wrap: (method: Method) => Method,
  name: string = String(key),
): boolean {
  const isReplaced = guard(place, () => {
    const original: unknown = (owner as Record<PropertyKey, unknown>)[key];
    const known = replacements.get(owner) ?? new Map<PropertyKey, Replacement>();
    const earlier = known.get(key);
    if (earlier !== undefined && earlier.original !== original) return true;
    if (typeof original !== 'function') return false;
    const before = Object.getOwnPropertyDescriptor(owner, key);
    const wrapper = wrap(original as Method);
    if (!defineOwn(owner, key, wrapper)) return false;
    replacements.set(owner, known.set(key, { wrapper, original, before }));
    return true;
  });
  if (isReplaced !== true) {
    diagnostics.warnOnce(
      `${place}.${name}`,
      `${place}: expected \`${name}\` to be a method that can be replaced; the method is not traced.`,
    );
  }
  return isReplaced === true;
}

/** Restores the methods that `replaceMethod` replaced, except methods that other code has replaced since. */
export function restoreMethods(place: string, owner: object): void {
  guard(place, () => {
    const known = replacements.get(owner);
    for (const [key, { wrapper, before }] of known ?? []) {
      if ((owner as Record<PropertyKey, unknown>)[key] !== wrapper) continue;
      if (before === undefined) Reflect.deleteProperty(owner, key);
      else Reflect.defineProperty(owner, key, before);
      known?.delete(key);
    }
  });
}
