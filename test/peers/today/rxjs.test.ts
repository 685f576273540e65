// Functions that return Observables of RxJS.
import * as rx from 'rxjs';
import { expect, test } from 'vitest';
import { currentRun, traceable } from '#src/index.ts';
import { record } from '../../instrument/recorder.ts';

const soon = () => new Promise((resolve) => setImmediate(resolve));
/** An Observable of 1, 2 and 3, each in a turn of its own, that logs its start and its end. */
const numbers = (log: unknown[], error?: Error) =>
  new rx.Observable<number>((subscriber) => {
    log.push(currentRun()?.name);
    void (async () => {
      for (let n = 1; n <= 3; n++) await soon().then(() => subscriber.next(n));
      if (error === undefined) subscriber.complete();
      else subscriber.error(error);
    })();
    return () => log.push('torn down');
  });

const inner = traceable((n: number) => n + 1, { name: 'inner' });

const { firstValueFrom: first, lastValueFrom: last } = rx;
type Use = (source: rx.Observable<number>) => unknown;
const torn = new Error('torn');
const mapped = rx.mergeMap(async (n: number) => n);

test.each<[string, Use, number[], string?, Error?]>([
  ['lastValueFrom', last, [1, 2, 3]],
  ['firstValueFrom', first, [1], 'cancelled'],
  ['functions', (source) => new Promise<void>((done) => source.subscribe(() => {}, undefined, done)), [1, 2, 3]],
  ['operators', (source) => last(source.pipe(mapped, rx.take(2))), [1, 2], 'cancelled'],
  ['merge', (source) => last(rx.merge(rx.of(7), source).pipe(rx.toArray())), [1, 2, 3]],
  ['twice', (source) => Promise.all([last(source), first(source)]), [1, 2, 3]],
  ['error', (source) => last(source).catch(String), [1, 2, 3], 'Error: torn', torn],
  ['catchError', (source) => last(source.pipe(rx.catchError(() => rx.of(9)))), [1, 2, 3], 'Error: torn', torn],
])('an Observable is recorded as its first subscription receives it: %s', async (_, use, outputs, end, error) => {
  const recorder = record();
  const [bareLog, log]: unknown[][] = [[], []];
  const source = traceable(() => numbers(log as unknown[], error), { name: 'ask' })();
  expect(await use(source)).toEqual(await use(numbers(bareLog as unknown[], error)));
  await soon();
  expect(log).toEqual(bareLog?.map((line, at) => (at === 0 ? 'ask' : line)));
  expect(recorder.runs).toMatchObject([{ name: 'ask', outputs: { outputs } }]);
  const [{ extra, error: recorded } = {}] = recorder.runs;
  expect(extra?.runspan_end_reason ?? recorded?.split('\n')[0]).toBe(end);
});

test('an Observable stays lazy, may be endless or a Subject, and its consumer is not below its run', async () => {
  const recorder = record();
  const returning = <Value>(value: Value) => traceable(async () => value, { name: 'ask' })();
  await returning(rx.of(0));
  expect(await rx.firstValueFrom(await returning(rx.range(1, Number.POSITIVE_INFINITY)))).toBe(1);
  expect(await rx.firstValueFrom(await returning(new rx.BehaviorSubject(2)))).toBe(2);
  expect(await rx.lastValueFrom((await returning(rx.of(3))).pipe(rx.map(inner)))).toBe(4);
  expect(recorder.runs.map(({ outputs, end_time }) => end_time && outputs?.outputs)).toEqual([
    undefined,
    [1],
    [2],
    [3],
    4,
  ]);
  expect(recorder.runs.at(-1)).not.toHaveProperty('parent_run_id');
});
