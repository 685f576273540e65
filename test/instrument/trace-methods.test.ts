import { describe, expect, expectTypeOf, test } from 'vitest';
import { type MethodName, traceMethods } from '#src/index.ts';
import { logLines } from '../support/log-lines.ts';
import { record, treeOf } from './recorder.ts';

class Base {
  readonly prefix = '> ';

  say(text: string): string {
    return this.prefix + text;
  }
}

function makeClass() {
  return class Retriever extends Base {
    readonly pages = ['tea'];
    #reads = 0;

    static make(): number {
      return 1;
    }

    search(query: string): string[] {
      this.#reads++;
      return this.rank(this.pages.filter((page) => page === query));
    }

    rank(pages: string[]): string[] {
      return pages;
    }

    reads(): number {
      return this.#reads;
    }
  };
}

describe('traceMethods', () => {
  test('replaces the given methods of a class in place', () => {
    const recorder = record();
    const Retriever = makeClass();
    const before = new Retriever();
    expect(traceMethods(Retriever, ['search', 'rank', 'say', 'make'], { tags: ['shop'] })).toBe(Retriever);

    expect(before.search('tea')).toEqual(['tea']);
    expect([before.reads(), before.say('hi'), Retriever.make()]).toEqual([1, '> hi', 1]);
    expect(treeOf(recorder.runs)).toEqual({ search: { rank: {} }, say: {}, make: {} });
    expect(recorder.runs.every(({ tags }) => tags?.[0] === 'shop')).toBe(true);
    expect(new Base().say('x')).toBe('> x');
    expect(recorder.runs).toHaveLength(4);
  });

  test('traces methods of one object, each with its own options', () => {
    const recorder = record();
    const Retriever = makeClass();
    const [traced, other] = [new Retriever(), new Retriever()];
    traceMethods(traced, { search: { runType: 'retriever', name: 'find' }, rank: {} }, { metadata: { a: 1 } });

    other.search('tea');
    expect(recorder.runs).toEqual([]);
    traced.search('tea');
    expect(recorder.runs.map(({ name, run_type }) => [name, run_type])).toEqual([
      ['find', 'retriever'],
      ['rank', 'chain'],
    ]);
    expect(Object.keys(traced)).toEqual(Object.keys(other));
  });

  test('does not trace a method again that other code has replaced', () => {
    const recorder = record();
    const retriever = new (makeClass())();
    traceMethods(retriever, ['rank']);
    const traced = retriever.rank;
    const theirs = (pages: string[]): string[] => traced.call(retriever, pages);
    retriever.rank = theirs;
    traceMethods(retriever, ['rank']);
    expect(retriever.rank).toBe(theirs);
    retriever.rank([]);
    expect(recorder.runs).toHaveLength(1);
  });

  test('logs one line for each invalid argument and throws nothing', () => {
    const lines = logLines();
    const loose = traceMethods as unknown as (target: unknown, methods?: unknown) => unknown;
    const frozen = Object.freeze({ run: () => 1 });
    const getter = {
      get broken(): never {
        throw new Error('read');
      },
    };
    expect(loose({ size: 1 }, ['size', 'missing'])).toEqual({ size: 1 });
    expect(loose(frozen, ['run'])).toBe(frozen);
    expect(loose(getter, ['broken'])).toBe(getter);
    expect(loose(7, ['a'])).toBe(7);
    expect(loose({}, 'search')).toEqual({});
    expect(lines.filter((line) => line.includes('to be a method that can be replaced')).length).toBe(4);
    expect(lines.join('\n')).toContain('expected `target` to be a class or an object');
    expect(lines.join('\n')).toContain('expected `methods` to be a list of names or an object');
  });

  test('accepts only names of methods', () => {
    expectTypeOf<MethodName<Base>>().toEqualTypeOf<'say'>();
    const Retriever = makeClass();
    // @ts-expect-error -- a field is not a method
    () => traceMethods(new Retriever(), ['pages']);
    expectTypeOf(traceMethods(Retriever, [])).toEqualTypeOf(Retriever);
  });
});
