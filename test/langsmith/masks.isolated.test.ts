import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, onTestFinished, test } from 'vitest';
import { configure, currentRun, traceable as traceableOfCore } from '#src/index.ts';
import { Client, type ClientConfig, getCurrentRunTree, RunTree, traceable } from '#src/langsmith.ts';
import { releaseAll } from '#src/run/delayed-ends.ts';
import { unhandledRejections } from '../base/rejections.ts';
import { record } from '../instrument/recorder.ts';
import { addsUp } from '../support/adds-up.ts';
import { cases } from '../support/campaign.ts';
import { environmentOf } from '../support/environment.ts';
import { temporaryFolder } from '../support/folders.ts';
import { gate } from '../support/gate.ts';
import { ingestServer, ingestServerInTest } from '../support/ingest-server.ts';
import { logLines } from '../support/log-lines.ts';
import { startReceiver } from '../support/receiver.ts';
import { filesBelow } from '../support/spool.ts';
import { testFolder } from '../support/test-folder.ts';

const SECRET = 'hunter2';
type Mask = (values: Record<string, unknown>) => unknown;

/** Masks of every kind. Each returns nothing that it was given. */
const masks: Readonly<Record<string, Mask>> = {
  sync: () => ({ masked: true }),
  changing: (values) => {
    for (const key of Object.keys(values)) values[key] = 'masked';
    return values;
  },
  nothing: () => undefined,
  throwing: (values) => {
    throw new Error(JSON.stringify(values));
  },
  soon: async () => ({ masked: true }),
  later: () => new Promise((resolve) => setTimeout(() => resolve({ masked: true }), 2)),
  rejecting: (values) => Promise.reject(new Error(JSON.stringify(values))),
  // biome-ignore lint/suspicious/noThenProperty: a promise of another library
  thenable: () => ({ then: (resolve: (value: object) => void) => resolve({ masked: true }) }),
  hostile: () => ({
    // biome-ignore lint/suspicious/noThenProperty: a value that cannot be read
    get then() {
      throw new Error(SECRET);
    },
  }),
  never: () => new Promise(() => {}),
};
const mask = fc.constantFrom(...Object.keys(masks));

const ways = ['async', 'throw', 'stream', 'reads', 'sync', 'by hand', 'client', 'core', 'open'] as const;
interface Node {
  readonly way: (typeof ways)[number];
  readonly children: readonly Node[];
}
const node: (depth: number) => fc.Arbitrary<Node> = (depth) =>
  fc.record({
    way: fc.constantFrom(...ways),
    children: depth === 0 ? fc.constant([]) : fc.array(node(depth - 1), { maxLength: 2 }),
  });

const readAll = async (texts: Iterable<string>, text: Promise<string>) => [...texts, await text];

/** Records a tree of runs, with the secret in every payload, metadata value, chunk, event and error. */
async function recordTree({ way, children }: Node, client: Client, error: string): Promise<void> {
  const metadata = { note: SECRET };
  const below = async (): Promise<object> => {
    for (const child of children) await recordTree(child, client, error);
    return { text: SECRET };
  };
  const traced = (fn: (text: string) => unknown) => traceable(fn, { name: way, client, metadata })(SECRET) as unknown;
  if (way === 'async') expect(await traced(below)).toEqual({ text: SECRET });
  else if (way === 'reads')
    await traceable(readAll, { name: way, client, metadata })([SECRET].values(), Promise.resolve(SECRET));
  else if (way === 'sync') expect(await traced((text) => text)).toBe(SECRET);
  else if (way === 'core') await traceableOfCore(below, { name: way, metadata, inputs: () => ({ note: SECRET }) })();
  else if (way === 'throw') {
    const fail = async (): Promise<never> => {
      await below();
      throw new Error(error);
    };
    await expect(traced(fail)).rejects.toThrow(error);
  } else if (way === 'stream') {
    const chunks = traced(async function* () {
      yield SECRET;
      await below();
      getCurrentRunTree(true)?.addEvent({ name: 'new_token', kwargs: { token: SECRET } });
      yield { note: SECRET };
    });
    for await (const chunk of chunks as AsyncIterable<unknown>) expect(JSON.stringify(chunk)).toContain(SECRET);
  } else if (way === 'client') {
    const tree = new RunTree({ name: way, inputs: { note: SECRET }, metadata, client });
    await client.createRun(tree.toJSON());
    const end = { outputs: { note: SECRET }, end_time: Date.now(), error, extra: { metadata } };
    await client.updateRun(tree.id, end);
  } else {
    const tree = new RunTree({ name: way, inputs: { note: SECRET }, metadata, client });
    await tree.postRun();
    tree.metadata = { more: SECRET };
    await traceable(below, { name: 'below', client })(tree as never);
    await tree.end({ note: SECRET });
    if (way === 'by hand') await tree.patchRun();
  }
}

test('whatever the masks and the runs are, nothing unmasked is in a request, in a file or in the log, and every run is counted', async () => {
  const options = fc.record({
    hideInputs: mask,
    hideOutputs: mask,
    hideMetadata: mask,
    anonymizer: fc.constantFrom('sync', 'throwing', 'later', 'never'),
  });
  const ends = fc.constantFrom('flush', 'close', 'exit');
  const property = fc.asyncProperty(
    fc.array(node(3), { maxLength: 3 }),
    options,
    fc.boolean(),
    ends,
    fc.constantFrom('write-ahead', 'spill', 'memory'),
    fc.boolean(),
    async (trees, names, isOne, end, durability, isAway) => {
      const server = await ingestServer(() => ({ status: isAway ? 503 : 202 }));
      const folder = temporaryFolder();
      const lines: string[] = [];
      const exporter = configure({
        log: (_, line) => lines.push(line),
        endpoint: server.url,
        durability: durability as 'memory',
        spoolDir: folder.path,
        limits: { lingerMs: 1 },
      });
      const given = Object.entries(names).map(([option, name]) => [option, masks[name]]);
      const config = isOne ? { anonymizer: masks[names.anonymizer] } : Object.fromEntries(given);
      const client = new Client(config as ClientConfig);
      const error = isOne ? SECRET : 'failed';
      const root = traceable(async () => await Promise.all(trees.map((tree) => recordTree(tree, client, error))), {
        client,
      });
      await root();
      if (end === 'flush') await exporter.flush({ timeoutMs: 10 });
      releaseAll();
      if (end === 'exit') (exporter as unknown as { endProcess(): void }).endProcess();
      else await exporter.close({ timeoutMs: isAway ? 1 : 5_000 });
      const bodies = server.received.map(({ body }) => body.toString('latin1'));
      const files = filesBelow(folder.path).map((path) => readFileSync(join(folder.path, path), 'latin1'));
      await exporter.close({ timeoutMs: 1 });
      await server.close();
      folder.remove();
      for (const text of [...bodies, ...files, ...lines]) expect(text).not.toContain(SECRET);
      const counts = exporter.stats();
      expect(addsUp(counts)).toBe(true);
      const isWhole = end !== 'exit' && !isAway && counts.created > 0;
      if (isWhole) expect(bodies.join('')).toContain('dotted_order');
    },
  );
  await fc.assert(property, { numRuns: cases(150) });
}, 120_000);

async function service() {
  const receiver = await startReceiver();
  const exporter = configure({ endpoint: receiver.url });
  onTestFinished(async () => void (await exporter.close()));
  const runs = async () => {
    await exporter.flush();
    return (await receiver.runs({})).map(({ inputs, outputs, error, extra }) => {
      return { inputs, outputs, error: error?.split('\n')[0], metadata: extra?.metadata };
    });
  };
  return { exporter, runs };
}

describe('the result of a mask is recorded', () => {
  const shown = (values: Record<string, unknown>) => ({ ...values, note: 'masked', password: 'x', size: 1 });

  test.each<[string, Mask]>([
    ['a function', shown],
    ['an asynchronous function', async (values) => shown(values)],
  ])('of %s, after redaction', async (_, hide) => {
    const { runs } = await service();
    const given: unknown[] = [];
    const spy: Mask = (values) => {
      given.push(values);
      return hide(values);
    };
    const client = new Client({ hideInputs: spy, hideOutputs: spy, hideMetadata: spy } as ClientConfig);
    const answer = traceable((input: object) => ({ ...input, of: 'outputs' }), {
      client,
      metadata: { of: 'metadata' },
    });
    expect(await answer({ note: SECRET, date: new Date(0) })).toEqual({
      note: SECRET,
      date: new Date(0),
      of: 'outputs',
    });
    const fields = { note: 'masked', password: '[Redacted]', size: 1 };
    const date = '1970-01-01T00:00:00.000Z';
    expect(await runs()).toEqual([
      {
        inputs: { date, ...fields },
        outputs: { date, of: 'outputs', ...fields },
        metadata: { of: 'metadata', ...fields },
      },
    ]);
    expect(given).toContainEqual({ note: SECRET, date });
  });

  test('of `anonymizer`, which also masks errors, and is not called for fields with an option of their own', async () => {
    const { runs } = await service();
    const client = new Client({
      anonymizer: (values) => JSON.parse(JSON.stringify(values).replaceAll(SECRET, 'masked')),
      hideOutputs: false,
    });
    const options = { client, metadata: { user: SECRET } };
    await traceable((text: string) => text, options)(SECRET);
    const fail = traceable(() => Promise.reject(new TypeError(SECRET)), options);
    await expect(fail()).rejects.toThrow(SECRET);
    const metadata = { user: 'masked' };
    expect(await runs()).toMatchObject([
      { inputs: { input: 'masked' }, outputs: { outputs: SECRET }, metadata },
      { inputs: {}, error: 'TypeError: masked', metadata },
    ]);
  });

  test('in nested runs of other functions, once for each run', async () => {
    const { runs } = await service();
    const client = new Client({
      hideMetadata: ({ n }) => ({ n: n + 1 }),
      hideInputs: ({ input }) => ({ input: input + 1 }),
    });
    const inner = traceableOfCore((input: number) => input, { name: 'inner' });
    await traceable((input: number) => inner(input), { client, metadata: { n: 1 } })(1);
    const run = { inputs: { input: 2 }, outputs: { outputs: 1 }, metadata: { n: 2 } };
    expect(await runs()).toEqual([run, run]);
  });

  test('including long data URIs, which the mask receives and which stay in the payload', async () => {
    const { runs } = await service();
    const uri = `data:image/png;base64,${'A'.repeat(4_000)}`;
    const sizes: number[] = [];
    const client = new Client({
      hideInputs: (values) => {
        sizes.push(values.input.length);
        return values;
      },
    });
    await traceable((input: string) => input.length, { client })(uri);
    expect(sizes).toEqual([uri.length]);
    expect(await runs()).toMatchObject([{ inputs: { input: uri } }]);
  });
});

describe('a mask that does not return in time', () => {
  test('delays no call, hides the content after 1 s, and is logged once', async () => {
    const { exporter, runs } = await service();
    const lines = logLines('warn');
    const client = new Client({ hideInputs: masks.never as never });
    const answer = traceable((text: string) => text.length, { client });
    const startMs = performance.now();
    for (let call = 0; call < 3; call++) expect(await answer(SECRET)).toBe(7);
    // The line is logged after 1 s.
    expect(lines).toEqual([]);
    expect(exporter.stats().open).toBe(3);
    const run = { inputs: {}, outputs: { outputs: 7 } };
    expect(await runs()).toMatchObject([run, run, run]);
    expect(performance.now() - startMs).toBeGreaterThan(900);
    expect(lines).toEqual(['warn: Client.hideInputs has not settled in time, so the content is hidden.']);
  });

  test('does not prolong `close` beyond its timeout', async () => {
    const { exporter } = await service();
    await traceable((text: string) => text, { client: new Client({ hideOutputs: masks.never as never }) })(SECRET);
    expect(await exporter.close({ timeoutMs: 10 })).toEqual({ ok: false, pending: 1 });
    expect(exporter.stats().droppedByReason.closed).toBe(1);
    expect(addsUp(exporter.stats())).toBe(true);
  });

  test('counts as pending after a flush and is dropped by `close`, if the start of the run is already sent', async () => {
    const server = await ingestServerInTest((_, index) => (index === 0 ? { status: 202 } : 'hold'));
    const exporter = configure({ endpoint: server.url, limits: { startDelayMs: 1, lingerMs: 1 } });
    const started = server.arrived(1);
    const client = new Client({ hideOutputs: masks.never as never });
    await traceable(() => started.then(() => SECRET), { client })();
    expect(await exporter.flush({ timeoutMs: 10 })).toEqual({ ok: false, pending: 1 });
    expect(await exporter.close({ timeoutMs: 10 })).toEqual({ ok: false, pending: 1 });
    const { open, droppedByReason } = exporter.stats();
    expect([open, droppedByReason.closed]).toEqual([0, 1]);
  });

  test('is written to disk without the content by `close`', async () => {
    const server = await ingestServerInTest(() => ({ status: 503 }));
    const folder = testFolder();
    const exporter = configure({ endpoint: server.url, durability: 'spill', spoolDir: folder });
    await traceable(() => SECRET, { name: 'late', client: new Client({ hideOutputs: masks.never as never }) })();
    await exporter.close({ timeoutMs: 10 });
    const files = filesBelow(folder).map((path) => readFileSync(join(folder, path), 'latin1'));
    expect(files.join('')).toContain('end_time');
    expect(files.join('')).not.toContain(SECRET);
  });
});

describe('`processInputs` and `processOutputs`', () => {
  test('may return promises, for which the caller does not wait', async () => {
    const recorder = record();
    const settled = gate();
    const answer = traceable(async (input: { text: string }) => ({ ...input, more: SECRET }), {
      processInputs: async ({ text }) => {
        await settled;
        return { size: text.length, password: 'x' };
      },
      processOutputs: ({ more }) => settled.then(() => ({ size: more.length })),
    });
    expect(await answer({ text: SECRET })).toEqual({ text: SECRET, more: SECRET });
    expect(recorder.runs).toMatchObject([{ inputs: {} }]);
    expect(recorder.runs[0]?.outputs).toEqual({});
    settled.open();
    await expect
      .poll(() => recorder.runs)
      .toMatchObject([{ inputs: { size: 7, password: '[Redacted]' }, outputs: { size: 7 } }]);
  });

  test('of a stream may return promises', async () => {
    const { runs } = await service();
    const chunks = traceable(
      async function* (input: Iterable<string>, isReady: Promise<boolean>) {
        if (await isReady) yield* input;
      },
      {
        processInputs: async ({ args: [read, isReady] }) => ({ read: [...read].length, isReady }),
        processOutputs: async ({ outputs }) => ({ chunks: outputs.length }),
      },
    );
    for await (const chunk of chunks([SECRET].values(), Promise.resolve(true))) expect(chunk).toBe(SECRET);
    expect(await runs()).toMatchObject([{ inputs: { read: 1, isReady: true }, outputs: { chunks: 1 } }]);
  });

  test('receive copies, so a function that changes its argument does not change the call', async () => {
    const recorder = record();
    class User {
      name = 'ada';
    }
    const hide = (values: { users: User[]; notes: { text: string }[]; self?: unknown }) => {
      values.notes[0] = { text: 'masked' };
      expect(values.users[0]).toBeInstanceOf(User);
      expect(values.self).toBe(values);
      delete values.self;
      return values;
    };
    const answer = traceable((input: Parameters<typeof hide>[0]) => input, {
      processInputs: hide,
      processOutputs: hide,
    });
    const given: Parameters<typeof hide>[0] = { users: [new User()], notes: [{ text: SECRET }] };
    given.self = given;
    expect(await answer(given)).toBe(given);
    expect(given.notes).toEqual([{ text: SECRET }]);
    expect(JSON.stringify(recorder.runs)).not.toContain(SECRET);
  });

  test('that return promises do not replace what the application sets', async () => {
    const { runs } = await service();
    const hidden = { hidden: true };
    const later = async (values: object) => ({ ...values });
    const answer = traceable(
      async (text: string) => {
        currentRun()?.set({ inputs: hidden });
        return { text };
      },
      {
        processInputs: later,
        processOutputs: later,
        on_end: (tree) => {
          tree.outputs = hidden;
        },
      },
    );
    expect(await answer(SECRET)).toEqual({ text: SECRET });
    expect(await runs()).toMatchObject([{ inputs: hidden, outputs: hidden }]);
  });

  test('that return promises are recorded beside the usage that the application sets', async () => {
    const { runs } = await service();
    const usage_metadata = { input_tokens: 3, output_tokens: 4, total_tokens: 7 };
    const answer = traceable(async () => 'text', {
      processOutputs: async (outputs) => outputs,
      on_end: (tree) => {
        tree.metadata = { usage_metadata };
      },
    });
    await answer();
    expect(await runs()).toMatchObject([{ outputs: { outputs: 'text' }, metadata: { usage_metadata } }]);
  });

  test('that throw or reject hide the content', async () => {
    const { runs } = await service();
    const lines = logLines('warn');
    const answer = traceable((text: string) => text, {
      processInputs: () => {
        throw new TypeError(SECRET);
      },
      processOutputs: () => Promise.reject(new Error(SECRET)),
      name: 'answer',
    });
    expect(await answer(SECRET)).toBe(SECRET);
    expect(await runs()).toMatchObject([
      { inputs: { error: '`inputs` of "answer" threw TypeError' }, outputs: undefined },
    ]);
    expect(lines).toEqual([
      'warn: traceable: `inputs` of "answer" threw TypeError; the error is recorded in place of the value.',
      'warn: processOutputs rejected, so the content is hidden.',
    ]);
  });

  test('that reject do not affect the application if the run is refused', async () => {
    const { exporter } = await service();
    await exporter.close();
    const rejections = unhandledRejections();
    const reject = () => Promise.reject(new Error(SECRET));
    const options = { processInputs: reject, processOutputs: reject, client: new Client({ hideInputs: reject }) };
    expect(await traceable((text: string) => text, options)(SECRET)).toBe(SECRET);
    expect(await rejections()).toEqual([]);
  });
});

test.each(['LANGSMITH_HIDE_METADATA', 'LANGCHAIN_HIDE_METADATA'])(
  '%s hides metadata, with and without a client',
  async (name) => {
    environmentOf({ [name]: 'true' });
    const recorder = record();
    const metadata = { note: SECRET };
    for (const client of [undefined, new Client()]) {
      await traceable(async (n: number) => n, { ...(client && { client }), metadata })(1);
    }
    const shown = recorder.runs.map(({ inputs, extra }) => [inputs, extra?.metadata?.note]);
    expect(shown).toEqual(Array(2).fill([{ input: 1 }, '[Redacted]']));
  },
);
