import fc from 'fast-check';

const rethrow = (): never => {
  throw new Error('hostile');
};
const throwNull = (): never => {
  throw null;
};
const TRAPS = ['get', 'has', 'ownKeys', 'getPrototypeOf', 'getOwnPropertyDescriptor'] as const;

export function revokedProxy(target: object = {}): object {
  const { proxy, revoke } = Proxy.revocable(target, {});
  revoke();
  return proxy;
}

export function throwingProxy(traps: readonly (typeof TRAPS)[number][], target: object = {}): object {
  return new Proxy(target, Object.fromEntries(traps.map((trap) => [trap, rethrow])));
}

/** Functions that create values whose own code throws or returns values of a wrong type. */
export const hostileValues: readonly (() => unknown)[] = [
  () => revokedProxy(),
  () => revokedProxy([]),
  () => revokedProxy(() => {}),
  () => throwingProxy(TRAPS),
  () => Object.create(null),
  () => Object.freeze({ a: Object.freeze([1]) }),
  () => Object.defineProperty({ b: 1 }, 'a', { enumerable: true, get: rethrow }),
  () => Object.defineProperty({ b: 1 }, 'a', { enumerable: true, get: throwNull }),
  () => Object.defineProperty([1, 2], 0, { get: rethrow }),
  () => Object.assign([1], { [Symbol.iterator]: rethrow }),
  () => ({ toString: rethrow, [Symbol.toPrimitive]: rethrow }),
  () => ({ toString: () => ({}), valueOf: () => ({}) }),
  () => ({ toJSON: rethrow }),
  () => ({ toJSON: throwNull }),
  () => ({ toJSON: () => undefined }),
  () => Object.assign([1], { toJSON: () => 'x'.repeat(100_000) }),
  () => Object.defineProperty({ a: 1 }, 'toJSON', { value: () => 'x'.repeat(100_000) }),
  () => ({ toJSON: () => 5n }),
  () => ({
    toJSON() {
      return this;
    },
  }),
  () => ({ toJSON: () => new Promise(() => {}) }),
  () => {
    const circle: { self?: unknown } = {};
    circle.self = circle;
    return circle;
  },
  () => {
    const circle = new Map<string, unknown>();
    circle.set('self', circle);
    return circle;
  },
  () => Object.defineProperty(new Error('x'), 'message', { get: rethrow }),
  () => Object.defineProperty(new Error('x'), 'name', { value: Symbol('name') }),
  () => Object.defineProperty(new Error('x'), 'stack', { get: rethrow }),
  () => Object.defineProperty(new Error('x'), 'cause', { get: throwNull }),
  () => Object.assign(new AggregateError([]), { errors: null }),
  () => new Error('x', { cause: revokedProxy() }),
  () => Object.assign(new Date(), { toISOString: rethrow }),
  () => new Date(Number.NaN),
  () => Object.assign(new Uint8Array(3), { constructor: null }),
  () => {
    const bytes = new Uint8Array(3);
    structuredClone(bytes.buffer, { transfer: [bytes.buffer] });
    return bytes;
  },
  () => new Proxy(new Uint8Array(3), {}),
  () => Object.assign(new String('x'), { valueOf: rethrow }),
  () => new Array(2 ** 32 - 1),
  () => Symbol('symbol'),
  () => 10n ** 40n,
  () => rethrow,
  () => class Hostile {},
  () => Promise.resolve(1),
  () => '\ud800',
  () => Number.NaN,
  () => -0,
  () => undefined,
  () => null,
];

const madeOf = (value: unknown) => (): unknown => value;

/**
 * Functions that create hostile values and values of every built-in type, also nested. The values themselves would
 * break fast-check.
 */
export const anything: fc.Arbitrary<() => unknown> = fc.letrec<{ value: () => unknown }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 4, depthSize: 'small' },
    fc.constantFrom(...hostileValues),
    fc.anything({ withBigInt: true, withDate: true, withMap: true, withSet: true, withTypedArray: true }).map(madeOf),
    fc.anything({ withBoxedValues: true, withNullPrototype: true, withSparseArray: true }).map(madeOf),
    fc.uniqueArray(fc.constantFrom(...TRAPS), { minLength: 1 }).map((traps) => () => throwingProxy(traps)),
    fc.array(tie('value'), { maxLength: 4 }).map((makers) => () => makers.map((make) => make())),
    fc
      .dictionary(fc.string(), tie('value'), { maxKeys: 4 })
      .map((makers) => () => Object.fromEntries(Object.entries(makers).map(([key, make]) => [key, make()]))),
  ),
})).value;
