// `reflect-metadata` stores metadata by function identity. The stand-in here has the methods needed for a copy;
// test/peers/nestjs/ uses the real package.
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { traceable, traced, traceMethods, withFlush } from '#src/index.ts';
import { logLines } from '../support/log-lines.ts';
import { record } from './recorder.ts';

type Key = string | symbol;
type Metadata = Map<Key, unknown>;

let known: WeakMap<object, Metadata>;

/** A legacy decorator like the `SetMetadata(key, value)` of a framework. */
const marked = (key: Key, value: unknown) => (_target: object, _name: string, member: PropertyDescriptor) =>
  define(key, value, member.value);

function define(key: Key, value: unknown, target: object): void {
  known.set(target, (known.get(target) ?? new Map()).set(key, value));
}

const metadataOf = (target: object) => Object.fromEntries(known.get(target) ?? []);

/** Applies legacy decorators to a method, the lowest first, and returns the method of the class. */
function decorated(...decorators: readonly ((...member: [object, string, PropertyDescriptor]) => void)[]) {
  class Controller {
    answer(): string {
      return 'secret';
    }
  }
  const { prototype } = Controller;
  const member = Object.getOwnPropertyDescriptor(prototype, 'answer') as PropertyDescriptor;
  for (const decorator of decorators) decorator(prototype, 'answer', member);
  Object.defineProperty(prototype, 'answer', member);
  return Controller;
}

const guards = marked('guards', ['deny']);
const route = marked(Symbol.for('route'), '/secret');
const both = { guards: ['deny'], [Symbol.for('route')]: '/secret' };

describe('metadata that reflect-metadata keeps of a method', () => {
  beforeEach(() => {
    known = new WeakMap();
    Object.assign(Reflect, {
      getOwnMetadataKeys: (target: object) => [...(known.get(target)?.keys() ?? [])],
      getOwnMetadata: (key: Key, target: object) => known.get(target)?.get(key),
      defineMetadata: define,
    });
  });
  afterEach(() => {
    for (const name of ['getOwnMetadataKeys', 'getOwnMetadata', 'defineMetadata'])
      Reflect.deleteProperty(Reflect, name);
  });

  test.each([
    ['above them', [guards, route, traced]],
    ['below them', [traced, guards, route]],
    ['above and below them', [traced({ name: 'inner' }), guards, route, traced]],
    ['twice among them', [guards, traced, route, traced({ tags: ['outer'] })]],
  ])('is copied to the traced method with `@traced` %s', (_place, decorators) => {
    const recorder = record();
    const Controller = decorated(...decorators);
    expect(metadataOf(Controller.prototype.answer)).toEqual(both);
    expect(new Controller().answer()).toBe('secret');
    expect(recorder.runs).toHaveLength(1);
  });

  test.each([
    ['of a class', (Controller: ReturnType<typeof decorated>) => Controller],
    ['of one object', (Controller: ReturnType<typeof decorated>) => new Controller()],
  ])('is copied to methods %s that traceMethods traces', (_kind, targetOf) => {
    const target = targetOf(decorated(guards, traced, route)) as { prototype?: { answer(): string }; answer(): string };
    traceMethods(target, ['answer']);
    expect(metadataOf((target.prototype ?? target).answer)).toEqual(both);
  });

  test('is copied to the functions that traceable, its `with` and withFlush return', () => {
    const answer = (): string => 'secret';
    define('guards', ['deny'], answer);
    const wrapper = traceable(answer);
    define('route', '/secret', wrapper);
    const expected = { guards: ['deny'], route: '/secret' };
    expect(metadataOf(wrapper.with({ name: 'other' }))).toEqual(expected);
    expect(metadataOf(traceable(wrapper, { name: 'again' }))).toEqual(expected);
    expect(metadataOf(withFlush(wrapper))).toEqual(expected);
    expect(metadataOf(answer)).toEqual({ guards: ['deny'] });
  });

  test('leaves a method untraced if it cannot be copied, and one log line reports it', () => {
    const recorder = record();
    const lines = logLines();
    const failing = {
      defineMetadata: () => {
        throw new Error('sealed');
      },
    };
    Object.assign(Reflect, failing);
    const Controller = decorated(guards, traced);
    expect(metadataOf(Controller.prototype.answer)).toEqual({ guards: ['deny'] });
    expect(new Controller().answer()).toBe('secret');
    expect(recorder.runs).toEqual([]);
    expect(lines).toEqual([expect.stringContaining('sealed')]);
  });
});
