import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { defaultLimits } from '#src/config/limits.ts';
import { type Redaction, redact } from '#src/payload/redaction/redact.ts';
import { serialize } from '#src/payload/serialize.ts';
import { type PayloadRules, payloadRules } from '#src/payload/truncate.ts';
import { forAll } from '../support/campaign.ts';

const SECRET = 'hunter2hunter2';
const TEXT = `{"password":"${SECRET}"}`;

/** Default limits, with rules for redaction that have seen no payload yet. */
const rulesWith = (redaction: Redaction = redact(), limits = {}): PayloadRules => ({
  ...payloadRules(defaultLimits, redaction),
  ...limits,
});

/** Returns a function that returns `before`, and `after` from its call number `at` on. */
function changingAt<Value>(at: number, before: Value, after: Value): () => Value {
  let calls = 0;
  return () => (calls++ < at ? before : after);
}

type Read = () => unknown;

const proxyOf = (read: Read): object =>
  new Proxy({ note: '' }, { get: (target, key) => (key === 'note' ? read() : Reflect.get(target, key)) });
const listProxyOf = (read: Read): object =>
  new Proxy([''], { get: (target, key) => (key === '0' ? read() : Reflect.get(target, key)) });
const getterOf = (read: Read, object: object = {}): object =>
  Object.defineProperty(object, 'note', { enumerable: true, get: read });

class Instance {
  constructor(read: Read) {
    getterOf(read, this);
  }
}

class WithToJson {
  readonly #read: Read;
  constructor(read: Read) {
    this.#read = read;
  }
  toJSON(): unknown {
    return this.#read();
  }
}

test.each<[string, unknown]>([
  ['an object', { value: SECRET, name: 'password' }],
  ['a proxy', new Proxy({ value: SECRET, name: 'password' }, {})],
  [
    'a Map',
    new Map([
      ['value', SECRET],
      ['name', 'password'],
    ]),
  ],
  ['a class instance', Object.assign(new Instance(() => ''), { value: SECRET, name: 'password' })],
  [
    'an object with a getter',
    {
      value: SECRET,
      get name() {
        return 'password';
      },
    },
  ],
])('a value is a secret because of a later property of %s', (_, value) => {
  expect(serialize(value, rulesWith())).not.toContain(SECRET);
});

/** Values whose text changes between two reads. */
const VALUES: [string, (read: Read) => unknown][] = [
  ['a proxy', proxyOf],
  ['a proxy of a list', listProxyOf],
  ['a nested proxy', (read) => ({ a: [{ b: proxyOf(read) }] })],
  ['a proxy of a proxy', (read) => new Proxy(proxyOf(read), {})],
  ['a proxy in a Map', (read) => new Map([['a', proxyOf(read)]])],
  ['a proxy in a Set', (read) => new Set([proxyOf(read)])],
  ['a getter', getterOf],
  ['a getter of an object without prototype', (read) => getterOf(read, Object.create(null))],
  ['a nested getter', (read) => ({ a: [{ b: getterOf(read) }] })],
  [
    'a getter of an object literal',
    (read) => ({
      get note() {
        return read();
      },
    }),
  ],
  ['a getter of an instance', (read) => new Instance(read)],
  ['toJSON of an instance', (read) => new WithToJson(read)],
  ['toJSON of an object', (read) => ({ toJSON: read })],
];

describe.each(VALUES)('the text of %s that changes after a read', (_, make) => {
  const READS = [0, 1, 2, 3];

  test('is masked, however often it was read', () => {
    for (const at of READS) {
      const json = serialize(make(changingAt<unknown>(at, 'hello', TEXT)), rulesWith());
      expect(json).not.toContain(SECRET);
      expect(json).toMatch(/hello|\[Redacted\]/);
    }
  });

  test('is masked at a path', () => {
    for (const at of READS) {
      const rules = rulesWith(redact({ paths: ['outputs.**'] }));
      expect(serialize(make(changingAt<unknown>(at, 'hello', SECRET)), rules, ['outputs'])).not.toContain(SECRET);
    }
  });

  test.each([
    ['characters', { bytes: 1_000 }, 'x'.repeat(5_000)],
    ['values', { nodes: 500 }, Array(5_000).fill(1)],
    ['items', { width: 500 }, Array(5_000).fill(1)],
    [
      'levels',
      { depth: 10 },
      Array(100)
        .fill(0)
        .reduce<unknown>((inner) => ({ inner }), 'x'.repeat(1_500)),
    ],
  ])('is limited in its %s', (_, limits, large) => {
    for (const at of READS) {
      const json = serialize(make(changingAt<unknown>(at, 'hello', large)), rulesWith(redact(), limits));
      expect(json.length).toBeLessThan(1_200);
    }
  });
});

test('a property that a proxy adds after its keys were read is masked', () => {
  for (const at of [0, 1, 2, 3]) {
    const keys = changingAt(at, ['a'], ['a', 'password']);
    const proxy = new Proxy(
      { a: 1, password: SECRET },
      { ownKeys: () => [...keys(), ...['a', 'password']].slice(0, 2) },
    );
    expect(serialize({ proxy }, rulesWith())).not.toContain(SECRET);
  }
});

test('no change of a proxy at any depth brings a secret into the text', () => {
  const tree = fc.letrec((tie) => ({
    node: fc.oneof(
      { maxDepth: 4 },
      fc.constant('leaf'),
      fc.constant('changing'),
      fc.array(tie('node'), { maxLength: 3 }),
      fc.dictionary(fc.constantFrom('a', 'note', 'value', 'text'), tie('node'), { maxKeys: 3 }),
    ),
  })).node;
  forAll(100, [fc.array(tree, { maxLength: 3 }), fc.nat(4)], (root, at) => {
    const read = changingAt<unknown>(at, 'hello', TEXT);
    expect(serialize(withProxies(root, read), rulesWith())).not.toContain(SECRET);
  });
});

/** Wraps each object in a proxy whose texts `changing` come from `read`. */
function withProxies(value: unknown, read: Read): unknown {
  if (typeof value !== 'object' || value === null) return value;
  const copy = Array.isArray(value) ? [...value] : { ...value };
  for (const [key, inner] of Object.entries(copy)) Reflect.set(copy, key, withProxies(inner, read));
  return new Proxy(copy, {
    get(target, key) {
      const inner: unknown = Reflect.get(target, key);
      return inner === 'changing' ? read() : inner;
    },
  });
}

test('a key whose getter was found once is checked in each later object', () => {
  const rules = rulesWith();
  serialize(
    getterOf(() => 'hello'),
    rules,
  );
  serialize({ note: 'hello' }, rules);
  for (const at of [0, 1, 2, 3]) {
    expect(serialize({ list: [{ note: 'a' }, getterOf(changingAt(at, 'hello', TEXT))] }, rules)).not.toContain(SECRET);
  }
});

test.each([
  ['a proxy', new Proxy({ name: 'password', value: SECRET }, {})],
  ['a Map', new Map(Object.entries({ name: 'password', value: SECRET }))],
])('the value of a pair in %s is masked by its name', (_, pair) => {
  expect(serialize([pair], rulesWith())).toBe('[{"name":"password","value":"[Redacted]"}]');
});
