// Hooks that are called when runs start and end, and the fields of a run that an application reads.
import OpenAI from 'openai';
import { afterEach, describe, expect, test } from 'vitest';
import { configure, currentRun, type HookedRun, type Run, redact, startRun, traceable } from '#src/index.ts';
import { RunspanCallbackHandler } from '#src/langchain.ts';
import { wrapOpenAI } from '#src/openai.ts';
import { record } from '../instrument/recorder.ts';
import { logLines } from '../support/log-lines.ts';

function listing(calls: unknown[], mark = '') {
  return {
    onStart: ({ name }: HookedRun): void => void calls.push(`${mark}start ${name}`),
    onEnd: ({ name, outputs, error }: HookedRun): void =>
      void calls.push([`${mark}end ${name}`, outputs ?? error?.split('\n', 1)[0]]),
  };
}

describe('the hooks of a run', () => {
  test('are called before and after the function, with the outputs or the error', async () => {
    record();
    const calls: unknown[] = [];
    const hooks = listing(calls);
    const fails = traceable(
      () => {
        calls.push('called');
        throw new TypeError('no');
      },
      { name: 'fails', ...hooks },
    );
    const inner = traceable(() => 1, { name: 'inner' });
    const outer = traceable(async () => ({ sum: inner() }), { name: 'outer', ...hooks });
    expect(fails).toThrow(TypeError);
    await outer();
    await inner.with(hooks)();
    const byHand = startRun({ name: 'by hand', ...hooks });
    byHand.end({ a: 1 });
    byHand.end({ a: 2 });
    expect(calls).toEqual([
      'start fails',
      'called',
      ['end fails', 'TypeError: no'],
      'start outer',
      ['end outer', { sum: 1 }],
      'start inner',
      ['end inner', { outputs: 1 }],
      'start by hand',
      ['end by hand', { a: 1 }],
    ]);
  });

  test('are called at the first step and at the end of a generator', () => {
    record();
    const calls: unknown[] = [];
    const chunks = traceable(
      function* () {
        yield 1;
        calls.push('step');
        yield 2;
      },
      { name: 'chunks', ...listing(calls) },
    );
    const generator = chunks();
    expect(calls).toEqual([]);
    expect([...generator]).toEqual([1, 2]);
    expect(calls).toEqual(['start chunks', 'step', ['end chunks', { outputs: [1, 2] }]]);
  });

  test('may change the run, but not its end time', () => {
    const recorder = record();
    const options = {
      onStart: (run: Run) => run.set({ tags: ['started'] }),
      onEnd: (run: Run) => {
        run.set({ metadata: { count: Object.keys(run.outputs ?? {}).length }, outputs: { replaced: true } });
        run.event('counted');
      },
    };
    startRun({ name: 'a', startTime: 0, ...options }).end({ a: 1, b: 2 }, { endTime: 1 });
    expect(recorder.run('a')).toMatchObject({
      tags: ['started'],
      outputs: { replaced: true },
      events: [{ name: 'counted' }],
      extra: { metadata: { count: 2 } },
      end_time: '1970-01-01T00:00:00.001000Z',
    });
  });

  test('that end the run end it once, without calling themselves', () => {
    const recorder = record();
    let calls = 0;
    const onEnd = (run: Run): void => {
      calls++;
      run.end({ by: 'hook' });
    };
    startRun({ name: 'a', onEnd }).end({ by: 'application' });
    expect(calls).toBe(1);
    expect(recorder.run('a').outputs).toEqual({ by: 'hook' });
  });

  test('are called without tracing', () => {
    const recorder = record();
    const traced = traceable(() => currentRun());
    const seen: unknown[] = [];
    startRun({ name: 'a', onStart: () => seen.push(traced()), onEnd: () => seen.push(traced()) }).end();
    expect(seen).toEqual([undefined, undefined]);
    expect(recorder.runs.map(({ name }) => name)).toEqual(['a']);
  });

  test('that throw or reject log one line each, and the result and the record are the same', async () => {
    const recorder = record();
    const lines = logLines();
    const options = {
      name: 'a',
      onStart: () => {
        throw new Error('start');
      },
      onEnd: async () => {
        throw new Error('end');
      },
    };
    for (const result of [1, 2]) expect(traceable(() => result, options)()).toBe(result);
    await new Promise((resolve) => setImmediate(resolve));
    expect(lines).toEqual([
      'warn: onStart failed, the application is not affected: start',
      'warn: onEnd failed, the application is not affected: end',
    ]);
    expect(recorder.runs.map(({ outputs }) => outputs)).toEqual([{ outputs: 1 }, { outputs: 2 }]);
  });
});

describe('the hooks of `configure`', () => {
  afterEach(() => {
    configure({ tracing: false });
  });

  const endpoint = 'http://127.0.0.1:1';

  test('are called for every run, before the hooks of the run', () => {
    const calls: unknown[] = [];
    configure({ endpoint, log: 'silent', ...listing(calls, 'all: ') });
    traceable(() => traceable(() => 1, { name: 'inner' })(), { name: 'outer', ...listing(calls) })();
    expect(calls).toEqual([
      'all: start outer',
      'start outer',
      'all: start inner',
      ['all: end inner', { outputs: 1 }],
      ['all: end outer', { outputs: 1 }],
      ['end outer', { outputs: 1 }],
    ]);
  });

  test('receive the model calls of SDKs and the steps of LangChain, with their metadata', async () => {
    const models: unknown[] = [];
    const note = ({ name, metadata }: HookedRun): void => void models.push([name, metadata.ls_model_name]);
    configure({ endpoint, log: 'silent', onStart: note, onEnd: note });
    const answer = { object: 'chat.completion', model: 'm-1', choices: [] };
    const client = new OpenAI({ apiKey: 'k', fetch: async () => Response.json(answer) });
    await wrapOpenAI(client).chat.completions.create({ model: 'm', messages: [] });
    const handler = new RunspanCallbackHandler();
    handler.handleLLMStart({}, ['hi'], 'a', undefined, { invocation_params: { model: 'm2' } }, [], {}, 'step');
    handler.handleLLMEnd({ generations: [] }, 'a');
    expect(models).toEqual([
      ['openai.chat.completions', 'm'],
      ['openai.chat.completions', 'm'],
      ['step', 'm2'],
      ['step', 'm2'],
    ]);
  });

  test('are not called for runs that are not recorded', () => {
    const calls: unknown[] = [];
    const work = traceable(() => 1, listing(calls));
    configure({ endpoint, log: 'silent', sampleRate: 0, ...listing(calls) });
    work();
    configure({ tracing: false, ...listing(calls) });
    work();
    expect(calls).toEqual([]);
  });
});

describe('a run can be read:', () => {
  test('its name, tags and metadata include those it inherits and those that were set', () => {
    record();
    const inner = traceable(
      () => {
        currentRun()?.set({ name: 'renamed', tags: ['c'], metadata: { set: true } });
        const { name, tags, metadata } = currentRun() as Run;
        return { name, tags, metadata };
      },
      { tags: ['b'], metadata: { own: { deep: [1] } } },
    );
    const outer = traceable(() => inner(), { tags: ['a'], metadata: { above: 1 } });
    expect(outer()).toEqual({
      name: 'renamed',
      tags: ['a', 'b', 'c'],
      metadata: { above: 1, own: { deep: [1] }, set: true },
    });
  });

  test('its inputs and metadata are those that are recorded, after redaction', () => {
    record({ redact: redact({ paths: ['**.card'] }) });
    const pay = traceable((_: object) => [currentRun()?.inputs, currentRun()?.metadata], { metadata: { card: '41' } });
    expect(pay({ card: '4111', shop: 'tea' })).toEqual([{ card: '[Redacted]', shop: 'tea' }, { card: '[Redacted]' }]);
  });

  test('its fields are copies', () => {
    const recorder = record();
    const run = startRun({ name: 'a', tags: ['a'], metadata: { list: [1] }, inputs: { list: [1] } });
    const { tags, metadata, inputs = {} } = run;
    tags.push('b');
    (metadata.list as number[]).push(2);
    (inputs.list as number[]).push(2);
    expect([run.tags, run.metadata, run.inputs]).toEqual([['a'], { list: [1] }, { list: [1] }]);
    expect(recorder.run('a')).toMatchObject({
      tags: ['a'],
      extra: { metadata: { list: [1] } },
      inputs: { list: [1] },
    });
  });

  test('its fields are empty if nothing is recorded, and if a proxy of the run is read', () => {
    record({ hideInputs: true });
    const run = startRun({ name: 'a', inputs: { secret: 1 } });
    const empty = { tags: [], metadata: {}, inputs: undefined, outputs: undefined, error: undefined };
    expect(run).toMatchObject(empty);
    expect(new Proxy(startRun({ name: 'b', tags: ['a'] }), {})).toMatchObject({ name: '', ...empty });
  });
});
