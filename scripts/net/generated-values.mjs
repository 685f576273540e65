import { seeded } from './seeded.mjs';

/**
 * The value of an index: plain data for two thirds, else data with whatever a program may pass to a traced function. The
 * same index and seed give an equal value in every process. Code inside a value has no state, so that the number of times
 * that it is called does not change the value.
 */
export function generatedValue(seed, index) {
  const random = seeded(seed * 1_000_003 + index);
  const isPlain = random.chance(0.65);
  const context = { random, isPlain, ancestors: [], nodes: 0 };
  return random.chance(0.03) ? large(context) : branch(context, 0);
}

const KEYS = 'a b id name content role text messages user email items é 0 7'.split(' ');
const ODD_KEYS = [
  '',
  'x y',
  'line\nbreak',
  '\ud800',
  'k'.repeat(90),
  ...'__proto__ constructor length 日本 a"b'.split(' '),
];
const SECRET_KEYS = 'apiKey api_key Authorization password access_token secret X-API-KEY token tokens'.split(' ');
const SECRETS = [
  'Bearer abcdef0123456789abcdef0123456789',
  'sk-proj-abcdefghijklmnopqrstuvwxyz0123456789',
  'ghp_abcdefghijklmnopqrstuvwxyz0123456789',
  'eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U',
  'AKIAIOSFODNN7EXAMPLE',
  'postgres://admin:hunter2@db.example:5432/app',
  'https://user:pass@example.com/path?api_key=12345678&q=1',
  '{"password":"hunter2","user":{"apiKey":"12345"},"n":1}',
  'a text with {"authorization": "Basic dXNlcjpwYXNz"} in it',
  '[{"token":"abc"},{"name":"x"}]',
  'POST /login HTTP/1.1\r\nAuthorization: Basic dXNlcjpwYXNz\r\nAccept: a/b\r\n\r\npassword=hunter2&n=1',
  'x-api-key: 1234\nContent-Type: text/plain',
  '?token=abc&next=1',
];
const PNG = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';
const TEXTS = [
  '',
  'naïve café',
  '日本語のテキスト',
  '😀 and more 👩‍👩‍👧',
  '\ud800',
  'a\udc00b',
  '\u0000\u0001\u001f\u007f',
  '"\\/\b\f\n\r\t',
];
const ODD_TEXTS = [
  '\u2028\u2029',
  '\ufeffbom',
  '1 2 3 4 5 6789',
  ...'<script> __proto__ null 12 - { {"a": [Truncated] [Circular]'.split(' '),
];
const NUMBERS = '0 -0 1 -1 0.1 1e21 1e-7 5e-324 1.7976931348623157e308 9007199254740992 -2147483648 NaN'
  .split(' ')
  .map(Number);

function branch(context, depth) {
  const { random } = context;
  context.nodes++;
  if (context.nodes > 200 || depth > 6 || random.chance(0.25 + depth * 0.1)) return leaf(context);
  if (!context.isPlain && random.chance(0.2)) return exotic(context, depth);
  return random.chance(0.35) ? list(context, depth) : object(context, depth);
}

function object(context, depth) {
  const { random } = context;
  const value = !context.isPlain && random.chance(0.1) ? Object.create(null) : {};
  context.ancestors.push(value);
  for (let count = random.int(6); count > 0; count--) {
    Object.defineProperty(value, key(context), { value: branch(context, depth + 1), ...OWN });
  }
  if (!context.isPlain && random.chance(0.2)) addOddProperty(value, context, depth);
  context.ancestors.pop();
  return value;
}

const OWN = { enumerable: true, writable: true, configurable: true };

function list(context, depth) {
  const { random } = context;
  const value = [];
  context.ancestors.push(value);
  for (let count = random.int(6); count > 0; count--) value.push(branch(context, depth + 1));
  if (!context.isPlain && random.chance(0.1)) value.length += random.int(4);
  if (!context.isPlain && random.chance(0.1)) value.extra = 'property of a list';
  if (!context.isPlain && random.chance(0.1)) delete value[0];
  context.ancestors.pop();
  return value;
}

function key({ random, isPlain }) {
  if (random.chance(0.06)) return random.pick(SECRET_KEYS);
  if (random.chance(isPlain ? 0.01 : 0.06)) return random.pick(ODD_KEYS);
  return random.chance(0.5) ? random.pick(KEYS) : `key${random.int(50)}`;
}

function leaf(context) {
  const { random, isPlain } = context;
  if (!isPlain && random.chance(0.35)) return oddLeaf(context);
  const kind = random.int(10);
  if (kind < 2) return random.int(100_000) - 50_000;
  if (kind === 2) return random.pick(NUMBERS);
  if (kind === 3) return random.pick([true, false, null, null, undefined]);
  if (kind === 4) return random.chance(0.5) ? random.pick(SECRETS) : jsonText(random);
  if (kind === 5) return random.pick(TEXTS) + random.pick(TEXTS);
  if (kind === 6 && random.chance(0.2)) return random.pick(ODD_TEXTS);
  if (kind === 7 && random.chance(0.1)) return `data:image/png;base64,${PNG}`;
  return text(random);
}

/** JSON text of other values, indented, cut off, encoded again or deep at times. */
function jsonText(random) {
  const value = object({ random, isPlain: true, ancestors: [], nodes: 150 }, 2);
  let made = JSON.stringify({ [random.pick(SECRET_KEYS)]: random.pick(TEXTS), ...value }, undefined, random.int(3));
  if (random.chance(0.1)) made = '['.repeat(300) + made + ']'.repeat(300);
  // Each level doubles the backslashes of the levels within.
  let levels = random.chance(0.3) ? random.int(6) : 0;
  for (; levels > 0 && made.length < 100_000; levels--) made = JSON.stringify(made);
  if (random.chance(0.2)) made = made.slice(0, random.int(made.length));
  return random.pick(['', '', '', ' ', 'result: ', '\ufeff']) + made;
}

function text(random) {
  const length = random.chance(0.1) ? random.int(2_000) : random.int(60);
  const words = [
    'lorem',
    'ipsum',
    'dolor',
    random.pick(TEXTS),
    random.chance(0.05) ? random.pick(SECRETS) : 'sit',
    'amet 42',
  ];
  let made = '';
  while (made.length < length) made += `${random.pick(words)} `;
  return made;
}

class Person {
  name = 'Ada';
  #hidden = 1;
  get upper() {
    return this.name.toUpperCase() + this.#hidden;
  }
}

class Money {
  constructor(amount) {
    this.amount = amount;
  }
  toJSON() {
    return { money: this.amount };
  }
}

class Failure extends Error {
  name = 'Failure';
  code = 'E_FAILURE';
}

/** An error without a stack: a stack would name files and lines. */
function failure(error) {
  return Object.defineProperty(error, 'stack', { value: `${error}` });
}

function oddLeaf({ random, ancestors }) {
  const bytes = Uint8Array.from({ length: random.int(40) }, (_, at) => at * 7);
  return random.pick([
    () => 10n ** BigInt(random.int(40)),
    () => Symbol('mark'),
    () => function named() {},
    () => class Shape {},
    () => new Date(random.int(2 ** 40)),
    () => new Date(Number.NaN),
    () => /a+b/giu,
    () => new URL('https://user:pw@example.com/a?password=x&b=1#c'),
    () => new URLSearchParams({ a: '1', token: 'abc' }),
    () => new Headers({ authorization: 'Bearer abcdef', accept: 'a/b' }),
    () => bytes,
    () => Buffer.from(bytes),
    () => bytes.buffer,
    () => new DataView(bytes.buffer),
    () => new Float64Array([1.5, Number.NaN, -0]),
    () => new BigInt64Array([1n, -5n]),
    () => new Blob([bytes], { type: 'image/png' }),
    () => [Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY],
    () => Object(random.pick(['boxed', 5, true, 7n])),
    () => Promise.resolve(1),
    () => new WeakMap(),
    () => (ancestors.length > 0 ? random.pick(ancestors) : 'no ancestor'),
    () =>
      (function () {
        // biome-ignore lint/complexity/noArguments: an arguments object is one of the values
        return arguments;
      })(1, 'two'),
    () => revoked(),
  ])();
}

function revoked() {
  const { proxy, revoke } = Proxy.revocable({}, {});
  revoke();
  return proxy;
}

function exotic(context, depth) {
  const { random } = context;
  const inner = () => branch(context, depth + 1);
  return random.pick([
    () => new Map(random.list(random.int(4), (at) => [random.pick([at, 'key', inner(), 'password']), inner()])),
    () => new Set(random.list(random.int(4), inner)),
    () => Object.assign(new Person(), { more: inner() }),
    () => new Money(inner()),
    () => failure(new Error('went wrong', { cause: inner() })),
    () => Object.assign(failure(new Failure('no')), { detail: inner(), apiKey: 'k' }),
    () => failure(new AggregateError([failure(new TypeError('one')), inner()], 'several')),
    () => new Proxy({ a: inner(), b: 1 }, {}),
    () => new Proxy([inner(), 2], {}),
    () => Object.freeze({ frozen: inner() }),
    () => Object.create({ inherited: inner() }, { own: { value: inner(), enumerable: true } }),
    () => sameTwice(inner()),
    () => ({ toJSON: () => inner() }),
  ])();
}

function sameTwice(value) {
  return { first: value, second: value, list: [value, value] };
}

function addOddProperty(value, context, depth) {
  const { random } = context;
  const inner = branch(context, depth + 1);
  const property = random.pick([
    { get: () => inner, enumerable: true },
    { get: throwing, enumerable: true },
    { value: inner, enumerable: false },
  ]);
  Object.defineProperty(value, random.pick(['odd', 'getter', Symbol('key')]), property);
  if (random.chance(0.2))
    value.toJSON = random.pick([throwing, () => inner, () => undefined, 'no function', (name) => name]);
}

function throwing() {
  throw new RangeError('no value today');
}

/** Values that reach the limits: wide, long, deep or many. */
function large(context) {
  const { random } = context;
  const size = 10 + random.int(random.chance(0.02) ? 12_000 : 300);
  return random.pick([
    () => random.list(size, (at) => at),
    () => Object.fromEntries(random.list(size, (at) => [`key${at}`, random.chance(0.5) ? at : 'text'])),
    () => ({ long: random.pick(['x', 'é', '日', '😀', '"', '\u0001', 'password: "x", ']).repeat(size * 10) }),
    () =>
      random.list(Math.min(size, 100), () => null).reduce((below, _, at) => (at % 2 ? [below] : { below }), 'bottom'),
    () => random.list(size, (at) => ({ at, name: random.pick(TEXTS), done: at % 2 === 0 })),
    () => new Map(random.list(size, (at) => [`key${at}`, at])),
    () => new Set(random.list(size, (at) => at)),
    () => ({ uri: `data:application/pdf;base64,${'QUJD'.repeat(size)}`, before: random.pick(SECRETS) }),
    () => new Uint8Array(size * 10),
  ])();
}
