// biome-ignore-all lint/complexity/noThisInStatic: the tests check `this`.
import { execFileSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { type TracedDecorator, traced } from '#src/index.ts';
import type { RunRecord } from '#src/run/record.ts';
import { outlineOf } from '#src/testing.ts';
import { root, temporaryFolder } from '../support/folders.ts';
import { logLines } from '../support/log-lines.ts';
import { runNode } from '../support/program.ts';
import { record } from './recorder.ts';

/** The decorator without its types. */
const misuse = traced as unknown as (...args: unknown[]) => unknown;

const namesOf = (runs: readonly RunRecord[]) => runs.map((run) => run.name);

describe('@traced as a standard decorator', () => {
  const key = Symbol('by symbol');

  class Base {
    prefix = '> ';

    @traced
    greet(name: string): string {
      return `${this.prefix}${name}`;
    }
  }

  class Service extends Base {
    static made = 0;
    @traced static label = () => 'label';
    #unit = 'm';
    readonly #secret = 'secret';

    @traced
    static count(by: number): number {
      this.made += by;
      return this.made;
    }

    @traced
    override greet(name: string): string {
      return `${super.greet(name)}!`;
    }

    @traced
    #whisper(text: string): string {
      return `${this.#secret} ${text}`;
    }

    @traced
    static #shared(): string {
      return `made ${this.made}`;
    }

    @traced
    get unit(): string {
      return this.#unit;
    }

    @traced
    set unit(unit: string) {
      this.#unit = unit;
    }

    @traced accessor size = 1;
    @traced accessor #depth = 2;
    @traced field = (by: number): string => `${this.prefix}${by}`;
    @traced({ name: 'renamed' }) plain = function (this: Service): string {
      return this.prefix;
    };

    @traced
    async later(): Promise<string> {
      await undefined;
      return this.#whisper('later');
    }

    @traced
    *chunks(): Generator<string> {
      yield this.prefix;
    }

    @traced
    [key](): string {
      return this.prefix;
    }

    hidden(): unknown[] {
      this.#depth += 1;
      return [this.#whisper('now'), Service.#shared(), this.#depth];
    }
  }

  test('traces static and #private methods', () => {
    const recorder = record();
    expect([Service.count(2), Service.count(3)]).toEqual([2, 5]);
    expect(new Service().hidden()).toEqual(['secret now', 'made 5', 3]);
    expect(namesOf(recorder.runs)).toEqual(['count', 'count', '#depth', '#depth', '#whisper', '#shared', '#depth']);
  });

  test('traces getters and setters', () => {
    const recorder = record();
    const service = new Service();
    service.unit = 'km';
    expect(service.unit).toBe('km');
    expect(recorder.runs).toMatchObject([
      { name: 'unit', inputs: { input: 'km' } },
      { name: 'unit', inputs: {}, outputs: { outputs: 'km' } },
    ]);
  });

  test('traces the getter and the setter of an accessor, and keeps its initial value', () => {
    const recorder = record();
    const [one, other] = [new Service(), new Service()];
    one.size += 4;
    expect([one.size, other.size]).toEqual([5, 1]);
    expect(namesOf(recorder.runs)).toEqual(['size', 'size', 'size', 'size']);
    expect(recorder.runs[1]?.inputs).toEqual({ input: 5 });
  });

  test('traces static and instance fields that contain a function', () => {
    const recorder = record();
    const service = new Service();
    expect([service.field(3), service.plain(), Service.label()]).toEqual(['> 3', '> ', 'label']);
    expect(namesOf(recorder.runs)).toEqual(['field', 'renamed', 'label']);
    expect(Object.hasOwn(service, 'field')).toBe(true);
  });

  test('traces asynchronous methods and generators', async () => {
    const recorder = record();
    const service = new Service();
    const chunks = service.chunks();
    expect(recorder.runs).toEqual([]);
    expect([...chunks]).toEqual(['> ']);
    expect(await service.later()).toBe('secret later');
    expect(outlineOf(recorder)).toBe('chunks (chain)\nlater (chain)\n  #whisper (chain)');
  });

  test('traces methods with their `this`, and the inherited methods that they call', () => {
    const recorder = record();
    expect(new Service().greet('you')).toBe('> you!');
    expect(recorder.runs[1]).toMatchObject({
      run_type: 'chain',
      inputs: { input: 'you' },
      outputs: { outputs: '> you' },
    });
    expect(outlineOf(recorder)).toBe('greet (chain)\n  greet (chain)');
  });
});

test('options of @traced apply to methods, accessors and fields', () => {
  const recorder = record();
  class Tool {
    @traced({ name: 'search', runType: 'tool', tags: ['a'], metadata: { k: 3 } })
    run(query: string): string[] {
      return [query];
    }

    @traced({ runType: 'prompt', outputs: (value) => ({ chars: String(value).length }) })
    accessor template = 'text';

    @traced()
    bare = () => 1;
  }
  const tool = new Tool();
  tool.run('q');
  tool.template;
  tool.bare();
  expect(recorder.runs).toMatchObject([
    { name: 'search', run_type: 'tool', tags: ['a'], extra: { metadata: { k: 3 } }, outputs: { outputs: ['q'] } },
    { name: 'template', run_type: 'prompt', outputs: { chars: 4 } },
    { name: 'bare', run_type: 'chain' },
  ]);
});

describe('@traced logs one line and changes nothing on', () => {
  const wrong = traced as unknown as (value: unknown, context: unknown) => undefined;
  const line = (what: string) =>
    `warn: @traced: expected a method, accessor or function field, got ${what}; the member is not traced.`;

  test('a class, without and with options', () => {
    const lines = logLines();
    @wrong
    class Bare {
      answer = 42;
    }
    @(misuse({ name: 'optioned' }) as typeof wrong)
    class Optioned {
      answer = 43;
    }
    expect([new Bare().answer, new Optioned().answer, Bare.name]).toEqual([42, 43, 'Bare']);
    expect(lines).toEqual([line('a class')]);
  });

  test.each<[string, unknown, string]>([
    ['text', 'text', 'a field that holds string'],
    ['null', null, 'a field that holds null'],
    ['nothing', undefined, 'a field that holds undefined'],
  ])('a field with %s', (_, value, what) => {
    const lines = logLines();
    class Holder {
      @traced field = value;
      @traced static shared = value;
    }
    expect([new Holder().field, new Holder().field, Holder.shared]).toEqual([value, value, value]);
    expect(lines).toEqual([line(what)]);
  });

  test('a member with invalid options, which is traced with the default options', () => {
    const recorder = record();
    const lines = logLines();
    class Tool {
      @(misuse('search') as TracedDecorator)
      run(): number {
        return 1;
      }
    }
    expect(new Tool().run()).toBe(1);
    expect(namesOf(recorder.runs)).toEqual(['run']);
    expect(lines).toEqual([
      'warn: traceable: expected the options to be an object, got string; the options are ignored.',
    ]);
  });

  test('a plain function, which is returned', () => {
    const lines = logLines();
    const fn = () => 1;
    expect(misuse(fn)).toBe(fn);
    expect(lines).toEqual([line('a class or function by itself')]);
  });
});

describe('@traced as a legacy decorator, compiled by tsc', () => {
  let answers: Record<string, unknown> = {};
  let runs: RunRecord[] = [];
  let told: string[] = [];
  beforeAll(async () => {
    // Below node_modules/, so that imports of packages are resolved.
    const cache = join(root, 'node_modules', '.cache');
    mkdirSync(cache, { recursive: true });
    const folder = temporaryFolder(cache);
    writeFileSync(join(folder.path, 'package.json'), '{ "type": "module" }');
    const tsc = join(root, 'node_modules/typescript/bin/tsc');
    const project = 'test/fixtures/legacy-decorators';
    const options = ['-p', join(root, project), '--outDir', folder.path];
    execFileSync(process.execPath, [tsc, ...options], { stdio: 'inherit' });
    const ended = await runNode([join(folder.path, project, 'program.js')]);
    folder.remove();
    expect(ended).toMatchObject({ code: 0, stderr: '' });
    ({ answers, runs, told } = JSON.parse(ended.stdout));
  });

  test('does not change any result', () => {
    expect(answers).toEqual({
      'static method': 1,
      method: 'hello you!',
      asynchronous: '> x',
      generator: ['> a', '> b'],
      getter: 'm',
      symbol: '> ',
      'setter of the pair': 'km',
      'static setter': 5,
      error: 'TypeError: > ',
      class: [42, 'Whole', 7, 'Optioned'],
      descriptor: { configurable: true, enumerable: false, writable: true, value: ['later', 1] },
    });
  });

  test('records methods, static methods, getters and setters', () => {
    expect(runs.map((run) => [run.name, run.outputs?.outputs])).toEqual([
      ['count', 1],
      ['greet', 'hello you!'],
      ['greet', 'hello you'],
      ['later', '> x'],
      ['renamed', '> x'],
      ['chunks', ['> a', '> b']],
      ['renamed', '> a'],
      ['renamed', '> b'],
      ['unit', 'm'],
      ['by symbol', '> '],
      ['unit', undefined],
      ['level', undefined],
      ['unit', 'km'],
      ['fail', undefined],
    ]);
    expect(runs.find((run) => run.name === 'renamed')).toMatchObject({ run_type: 'tool', tags: ['a'] });
    expect(runs.find((run) => run.name === 'level')?.inputs).toEqual({ input: 5 });
    expect(runs.at(-1)?.error).toMatch(/^TypeError: > \n/);
  });

  test('logs one line for each member that it cannot trace', () => {
    expect(told).toEqual([
      expect.stringContaining('got a class or function by itself; the member is not traced.'),
      expect.stringContaining('got something other than a method or accessor; the member is not traced.'),
    ]);
  });
});
