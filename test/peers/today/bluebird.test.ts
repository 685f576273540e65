import { createRequire } from 'node:module';
import { describe, expect, test } from 'vitest';
import { traceable } from '#src/instrument/traceable.ts';
import { record } from '../../instrument/recorder.ts';

type Handler = (error: Error) => unknown;

interface BluebirdPromise extends Promise<unknown> {
  catch(...filtersAndHandler: unknown[]): BluebirdPromise;
}

interface Bluebird {
  resolve(value: unknown): BluebirdPromise;
  reject(error: unknown): BluebirdPromise;
}

const Bluebird = createRequire(new URL('./package.json', import.meta.url))('bluebird') as Bluebird;

const error = Object.assign(new TypeError('lost'), { code: 'LOST' });
const by =
  (name: string): Handler =>
  ({ message }) =>
    `${name}: ${message}`;

const isLost = ({ message }: Error): boolean => message === 'lost';

describe('the filtered catch of a Bluebird promise', () => {
  test.each<[string, (promise: BluebirdPromise) => PromiseLike<unknown>, string | undefined]>([
    ['a class that matches', (promise) => promise.catch(TypeError, by('type')), 'type: lost'],
    ['a class that does not match', (promise) => promise.catch(RangeError, by('range')), undefined],
    [
      'a class that does not match, then one that does',
      (promise) => promise.catch(RangeError, by('range')).catch(TypeError, by('type')),
      'type: lost',
    ],
    ['several classes', (promise) => promise.catch(RangeError, TypeError, by('either')), 'either: lost'],
    ['several classes that do not match', (promise) => promise.catch(RangeError, URIError, by('either')), undefined],
    ['a predicate that matches', (promise) => promise.catch(isLost, by('predicate')), 'predicate: lost'],
    ['a predicate that does not match', (promise) => promise.catch(() => false, by('predicate')), undefined],
    ['properties that match', (promise) => promise.catch({ code: 'LOST' }, by('code')), 'code: lost'],
    ['properties that do not match', (promise) => promise.catch({ code: 'FOUND' }, by('code')), undefined],
    ['no filter', (promise) => promise.catch(by('any')), 'any: lost'],
  ])('with %s behaves the same when traced, and the run records the error', async (_title, use, expected) => {
    const recorder = record();
    const answerOf = (promise: BluebirdPromise) =>
      use(promise).then(
        (value) => value,
        (thrown) => thrown,
      );
    expect(await answerOf(Bluebird.reject(error))).toBe(expected ?? error);
    expect(await answerOf(traceable(() => Bluebird.reject(error))())).toBe(expected ?? error);
    expect(recorder.runs.map((run) => run.error?.split('\n')[0])).toEqual(['TypeError: lost']);
  });

  test('returns the value of a fulfilled promise, and the run records it', async () => {
    const recorder = record();
    expect(await traceable(() => Bluebird.resolve('rows'))().catch(RangeError, by('range'))).toBe('rows');
    expect(recorder.runs.map((run) => run.outputs)).toEqual([{ outputs: 'rows' }]);
  });
});
