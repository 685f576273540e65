import { diagnostics } from '../base/diagnostics.ts';
import { guard } from '../base/guard.ts';
import { shared } from '../base/shared.ts';
import { kindOf } from '../base/text.ts';
import type { Callable } from '../instrument/traceable.ts';
import { type Fields, fieldsOf } from '../payload/fields.ts';
import { type CallOptions, hiddenByEither, wrapOptions } from '../run/run-options.ts';

/**
 * Traces a value as all `wrap…` functions do. `trace` returns the value or its copy. Otherwise, the value is not what is
 * `expected`: it is returned unchanged, and each kind of value is logged once.
 */
export function wrap<Value>(
  place: string,
  expected: string,
  value: Value,
  given: unknown,
  trace: (options: CallOptions) => Value | false | undefined,
): Value {
  const options = wrapOptions(place, given);
  if (options === undefined) return value;
  return guard(place, () => trace(options) || untraced(place, expected, value)) ?? value;
}

function untraced(place: string, expected: string, given: unknown): undefined {
  const kind = kindOf(given);
  const got = kind === 'object' ? 'another object' : kind;
  diagnostics.warnOnce(`${place} ${kind}`, `${place}: expected ${expected}, got ${got}; the value is not traced.`);
}

export type Tracer = (original: Callable, options: CallOptions, sdk: Fields) => Callable;

interface Traced {
  readonly original: Callable;
  readonly options: CallOptions;
}

const originals: WeakMap<object, object> = shared('sdkCopies', () => new WeakMap());
/** The traced functions of copies. `runspan/register` also replaces the functions of an SDK by them. */
const functions: WeakMap<object, Traced> = shared('sdkFunctions', () => new WeakMap());

/**
 * Returns a copy of an SDK with traced functions, or a copy itself. Undefined if no function is traced. The options replace
 * those of functions that are already traced, and what these hide stays hidden.
 */
export function copyWithTraced<Sdk extends object>(
  sdk: Sdk,
  given: CallOptions,
  tracers: Readonly<Record<string, Tracer>>,
): Sdk | undefined {
  if (originals.has(sdk)) return sdk;
  // The AI SDK exports some functions under two names.
  const made = new Map<unknown, Callable>();
  for (const [name, trace] of Object.entries(tracers)) {
    const { [name]: member } = fieldsOf(sdk);
    if (typeof member !== 'function' || made.has(member)) continue;
    const { original, options: earlier } = functions.get(member) ?? { original: member as Callable, options: {} };
    const options = { ...earlier, ...given, hiding: hiddenByEither(earlier.hiding, given.hiding) };
    const wrapper = trace(original, options, fieldsOf(sdk));
    functions.set(wrapper, { original, options });
    made.set(member, wrapper);
  }
  if (made.size === 0) return undefined;
  // The traced functions may be inherited.
  const names = [...Object.keys(sdk), ...Object.keys(tracers).filter((name) => name in sdk)];
  const members = names.map((name) => [name, fieldsOf(sdk)[name]] as const);
  const copy = Object.fromEntries(members.map(([name, member]) => [name, made.get(member) ?? member]));
  originals.set(copy, sdk);
  return copy as Sdk;
}

/** Returns the SDK that `copyWithTraced` has copied. Returns any other value unchanged. */
export function unwrapCopy<Sdk extends object>(copy: Sdk): Sdk {
  return (originals.get(copy) as Sdk | undefined) ?? copy;
}
