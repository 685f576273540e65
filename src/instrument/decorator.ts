import { diagnostics } from '../base/diagnostics.ts';
import { guard } from '../base/guard.ts';
import type { TraceableOptions } from './plan.ts';
import { traceable } from './traceable.ts';

/**
 * What `@traced` is once it has its options: a decorator of the standard dialect (methods, static and `#private` ones,
 * getters, setters, accessors, fields that hold a function) and of the legacy one (`experimentalDecorators`: methods,
 * static methods, getters, setters).
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

/** `traced` itself: a decorator, or with options what gives one. */
// The decorator comes first: what a field passes to one, `undefined`, are options too.
export type Traced = TracedDecorator & ((options?: TraceableOptions) => TracedDecorator);

/**
 * Traces a class member, as `@traced` or `@traced({ name, runType, … })`; the run is named after the member. Works with
 * standard decorators and with `experimentalDecorators`. On anything that cannot be traced, a class for example, it says
 * so in one line and changes nothing.
 */
export const traced: Traced = ((...args: unknown[]): unknown => {
  const isDecorating = args.length > 1;
  if (isDecorating) return guard('@traced', () => decorate({}, args));
  const [options] = args;
  if (typeof options !== 'function') return (...member: unknown[]) => guard('@traced', () => decorate(options, member));
  // What the legacy dialect calls on a class, and what takes it for `traceable`, both put the answer in its place.
  refuse('a class or function by itself');
  return options;
}) as Traced;

type Accessor = ClassAccessorDecoratorTarget<unknown, unknown>;

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
      const { get, set } = value as Accessor;
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
    refuse('something that is no method or accessor');
    return;
  }
  const named = withName(options, key);
  const member = descriptor as PropertyDescriptor;
  if (typeof member.value === 'function') member.value = traceable(member.value, named);
  if (member.get !== undefined) member.get = traceable(member.get, named);
  if (member.set !== undefined) member.set = traceable(member.set, named);
}

/** What is no object is left to `traceable`, which says so. */
function withName(options: unknown, key: string | symbol | undefined): TraceableOptions {
  if (options !== undefined && (typeof options !== 'object' || options === null)) return options as TraceableOptions;
  const name = (typeof key === 'symbol' ? key.description : key) || 'anonymous';
  return guard('@traced', () => ({ name, ...options })) ?? { name };
}

function refuse(what: string): void {
  diagnostics.warnOnce(
    `traced ${what}`,
    `@traced: expected a method, accessor or function field, got ${what}; it is not traced.`,
  );
}
