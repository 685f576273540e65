// Arguments, results and errors of traced functions.
import { traceable } from 'langsmith/traceable';

class Point {
  x = 1;
}

const options = (name: string) => ({ name, run_type: 'tool' });

await traceable(async () => 'text', options('no argument'))();
await traceable(async (text: string) => text.length, options('a text'))('four');
await traceable(async (values: number[]) => values, options('a list'))([1, 2]);
await traceable(async (_first: undefined, second: number) => ({ second }), options('an absent argument'))(undefined, 2);
await traceable(async (point: Point) => point.x, options('an instance'))(new Point());
await traceable(async (given: { a: number }, more: string) => [given, more], options('two arguments'))({ a: 1 }, 'b');
await traceable((n: number) => n + 1, options('synchronous'))(1).then((sum: number) => sum);
await traceable(async () => undefined, options('no result'))();
await traceable(async () => null, options('null'))();

const fail = traceable(async (code: number) => {
  throw new RangeError(`code ${code}`);
}, options('fails'));
await fail(3).catch((error: RangeError) => error);
await traceable((): string => {
  throw 'a text';
}, options('throws'))().catch(() => {});
await traceable(async () => fail(4).catch(() => 'recovered'), options('recovers'))();

await traceable(async (size: bigint) => ({ size: size + BigInt(1) }), options('a bigint'))(BigInt(12));
