import { types } from 'node:util';
import fc from 'fast-check';
import { anything } from '../base/hostile.ts';

/** The kinds of hostile payloads; each has to make up a share of the cases. */
export const KINDS = [
  'proxy',
  'revoked proxy',
  'throwing getter',
  'cycle',
  'shared graph',
  'sparse',
  'surrogate',
  'binary',
  '10 MB',
  'throwing callback',
  'hanging callback',
] as const;

export type Kind = (typeof KINDS)[number];

/** Looks like a secret; no payload may show one in part. */
export const SECRET = 'SECRET';

/** What a payload calls while it is read: how often each of its pieces of code has run. */
export class Calls {
  readonly #counts = new Map<string, number>();
  #sites = 0;

  /** A function of the application at a place of its own. */
  counted<Args extends unknown[], Result>(work: (...args: Args) => Result): (...args: Args) => Result {
    const site = String(this.#sites++);
    return (...args) => {
      this.note(site);
      return work(...args);
    };
  }

  note(site: string): void {
    this.#counts.set(site, (this.#counts.get(site) ?? 0) + 1);
  }

  get most(): number {
    return Math.max(0, ...this.#counts.values());
  }
}

/** A payload that is hostile in one way, and in others beside it; made anew for each use. */
export interface HostilePayload {
  readonly kind: Kind;
  /** How often its hostile part stands in it, and may run. */
  readonly times: number;
  make(calls: Calls): unknown;
}

const HUGE = `${'x'.repeat(5_000_000)}${SECRET}1234${'y'.repeat(5_000_000)}`;

const never = (): Promise<never> => new Promise(() => {});
const fail = (): never => {
  throw new Error(`${SECRET}5678`);
};

/** How each kind is made, of a number that varies it and of something else to put into it. */
const makers: Readonly<Record<Kind, (calls: Calls, seed: number, inner: unknown) => unknown>> = {
  proxy: (calls, seed, inner) => {
    // A trap is asked for each key by itself.
    const target: object = seed % 2 === 0 ? { a: inner, b: seed } : [inner, seed];
    const asked = calls.counted(() => {});
    const site = `proxy ${seed} ${String(asked)}`;
    const handler: ProxyHandler<object> = {};
    for (const name of ['get', 'ownKeys', 'getOwnPropertyDescriptor', 'has', 'getPrototypeOf'] as const) {
      handler[name] = (...args: unknown[]) => {
        calls.note(`${site} ${name} ${String(args[1])}`);
        if (seed % 7 === 0 && name === 'get' && args[1] !== 'toJSON' && args[1] !== 'length') fail();
        return Reflect.apply(Reflect[name] as () => unknown, undefined, args) as never;
      };
    }
    return { proxy: new Proxy(target, handler), inner };
  },
  'revoked proxy': (_, seed, inner) => {
    const { proxy, revoke } = Proxy.revocable(seed % 3 === 0 ? [] : seed % 3 === 1 ? {} : () => {}, {});
    revoke();
    return seed % 5 === 0 ? proxy : { proxy, inner };
  },
  'throwing getter': (calls, seed, inner) => {
    const property = { enumerable: true, get: calls.counted(seed % 2 === 0 ? fail : () => seed) };
    const other = { enumerable: true, get: calls.counted(fail) };
    const target = [{ inner }, [inner, 1, 2], new Map([[1, inner]]), new Error('x'), Object.create(null)][seed % 5];
    return Object.defineProperties(target as object, { 0: property, other });
  },
  cycle: (_, seed, inner) => {
    const node: Record<string, unknown> = { inner, list: [] };
    node.self = seed % 2 === 0 ? node : { up: node };
    (node.list as unknown[]).push(node, new Map([['node', node]]), new Set([node]), new Error('x', { cause: node }));
    return node;
  },
  'shared graph': (_, seed, inner) => {
    let shared: unknown = seed % 2 === 0 ? inner : `leaf ${SECRET}4321`;
    for (let level = 0; level < 30 + (seed % 20); level++)
      shared = seed % 3 === 0 ? [shared, shared] : { a: shared, b: shared };
    return shared;
  },
  sparse: (_, seed, inner) => {
    const list: unknown[] = [inner];
    list.length = seed % 2 === 0 ? 2 ** 32 - 1 : seed;
    list[seed % 1_000] = seed;
    return seed % 3 === 0 ? list : { list };
  },
  surrogate: (_, seed, inner) => {
    const halves = `${'a'.repeat(seed % 200)}\ud800${'b'.repeat(seed % 90)}\udc00`;
    return { halves, [halves.slice(0, 30)]: inner, whole: '😀'.repeat(seed % 300) };
  },
  binary: (_, seed, inner) => {
    const bytes = new Uint8Array(seed % 5_000).fill(seed);
    const views = [
      bytes,
      bytes.buffer,
      Buffer.from(bytes),
      new DataView(bytes.buffer),
      new Blob([bytes]),
      bytes.subarray(1),
    ];
    return [views[seed % views.length], inner];
  },
  '10 MB': (_, seed, inner) => {
    const text = seed % 2 === 0 ? HUGE : `${HUGE.slice(seed)}${SECRET}8765${'z'.repeat(seed % 700)}`;
    return seed % 3 === 0 ? text : { text, inner, more: [text] };
  },
  'throwing callback': (calls, seed, inner) => {
    const toJSON = calls.counted(fail);
    return [
      { toJSON, inner },
      Object.assign([inner], { toJSON }),
      new (class Own {
        toJSON = toJSON;
      })(),
    ][seed % 3];
  },
  'hanging callback': (calls, seed, inner) => ({
    inner,
    later: { toJSON: calls.counted(never) },
    get value() {
      return never();
    },
    stream:
      seed % 2 === 0
        ? new ReadableStream({ pull: never })
        : (async function* () {
            yield await never();
          })(),
  }),
};

/** Anything hostile, in equal shares of the kinds, around anything else. */
export const hostilePayload: fc.Arbitrary<HostilePayload> = fc
  .record({
    kind: fc.constantFrom(...KINDS),
    seed: fc.nat(10_000),
    inner: anything,
    place: fc.constantFrom('alone', 'in an object', 'in a list', 'in a map', 'frozen'),
  })
  .map(({ kind, seed, inner, place }) => ({
    kind,
    times: place === 'in a list' || place === 'in a map' ? 2 : 1,
    make(calls) {
      const value = makers[kind](calls, seed, inner());
      if (place === 'in an object') return { before: `a ${SECRET}1111 b`, value, after: seed };
      if (place === 'in a list') return [seed, value, value];
      if (place === 'in a map')
        return new Map<unknown, unknown>([
          ['value', value],
          [seed % 2 === 0 ? 'k' : seed, value],
        ]);
      return place === 'frozen' ? frozen(value) : value;
    },
  }));

/** Frozen as far down as it goes without asking a proxy or a getter. */
function frozen(value: unknown): unknown {
  for (const object of objectsIn(value)) if (!ArrayBuffer.isView(object)) Object.freeze(object);
  return value;
}

/** What a payload is made of, by identity: all that would change if something was written to it. */
export function snapshotOf(value: unknown): unknown[] {
  const parts: unknown[] = [];
  for (const object of objectsIn(value)) {
    parts.push(object, Object.isExtensible(object), Object.getPrototypeOf(object));
    if (ArrayBuffer.isView(object)) continue;
    if (types.isMap(object) || types.isSet(object)) parts.push(object.size);
    for (const key of keysOf(object)) {
      const property = Object.getOwnPropertyDescriptor(object, key);
      parts.push(key, property?.value, property?.get, property?.enumerable);
    }
  }
  return parts;
}

const OBJECTS_MAX = 200;
const OWN_PROTOTYPES: ReadonlySet<unknown> = new Set(
  [Object, Array, Map, Set, Error, Uint8Array].map(({ prototype }) => prototype),
);

function objectsIn(value: unknown): Set<object> {
  const found = new Set<object>();
  const add = (one: unknown): void => {
    if (found.size >= OBJECTS_MAX || typeof one !== 'object' || one === null || types.isProxy(one)) return;
    // What belongs to the platform leads everywhere.
    const prototype: unknown = Object.getPrototypeOf(one);
    if (prototype === null || OWN_PROTOTYPES.has(prototype)) found.add(one);
  };
  add(value);
  for (const object of found) {
    if (ArrayBuffer.isView(object)) continue;
    for (const key of keysOf(object)) add(Object.getOwnPropertyDescriptor(object, key)?.value);
  }
  return found;
}

/** The stack of an error is put together when it is first asked for, by code that may throw. */
function keysOf(object: object): PropertyKey[] {
  return Reflect.ownKeys(object).filter((key) => key !== 'stack');
}
