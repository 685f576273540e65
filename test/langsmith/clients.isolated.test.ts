import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { configure } from '#src/index.ts';
import { Client, type ClientLike, getCurrentRunTree, type Replica, RunTree, traceable } from '#src/langsmith.ts';
import { createReceiver, type Receiver } from '#src/receiver.ts';
import { record } from '../instrument/recorder.ts';

async function service(): Promise<Receiver> {
  const receiver = await createReceiver();
  const exporter = configure({ endpoint: receiver.url, project: 'default' });
  onTestFinished(async () => {
    await exporter.close();
    await receiver.close();
  });
  return receiver;
}

function fakeClient() {
  vi.stubEnv('LANGSMITH_TRACING', 'true');
  onTestFinished(() => void vi.unstubAllEnvs());
  return { createRun: vi.fn(async () => {}), updateRun: vi.fn(async () => {}) } satisfies ClientLike;
}

describe('an object with the methods of a client', () => {
  test('is called for each traced call and its nested runs', async () => {
    const recorder = record();
    const client = fakeClient();
    const inner = traceable((n: number) => n + 1, { name: 'inner', run_type: 'tool' });
    const outer = traceable(async (n: number) => inner(n), { name: 'outer', client, metadata: { user: 'ada' } });
    expect(await outer(1)).toBe(2);
    expect(client.createRun.mock.calls).toMatchObject([
      [{ name: 'outer', run_type: 'chain', inputs: { input: 1 }, extra: { metadata: { user: 'ada' } } }],
      [{ name: 'inner', run_type: 'tool', inputs: { input: 1 } }],
    ]);
    const [[{ id, dotted_order }], [child]] = client.createRun.mock.calls as unknown as [[RunTree], [RunTree]];
    expect(child).toMatchObject({ parent_run_id: id, trace_id: id });
    expect(client.updateRun.mock.calls).toMatchObject([
      [child.id, { outputs: { outputs: 2 }, end_time: expect.any(String) }],
      [id, { outputs: { outputs: 2 }, dotted_order, end_time: expect.any(String) }],
    ]);
    expect(recorder.runs).toEqual([]);
  });

  test('is called for trees', async () => {
    const client = fakeClient();
    const tree = new RunTree({ name: 'by hand', inputs: { a: 1 }, client });
    await tree.postRun();
    await tree.end({ b: 2 });
    await tree.patchRun();
    expect(client.createRun.mock.calls).toMatchObject([[{ id: tree.id, name: 'by hand', inputs: { a: 1 } }]]);
    expect(client.updateRun.mock.calls).toMatchObject([[tree.id, { outputs: { b: 2 }, end_time: tree.end_time }]]);
  });

  test.each<[string, () => unknown]>([
    [
      'throw',
      () => {
        throw new Error('broken');
      },
    ],
    ['reject', () => Promise.reject(new Error('broken'))],
  ])('may %s without an effect on the application', async (_, fail) => {
    fakeClient();
    const client: ClientLike = { createRun: fail, updateRun: fail };
    expect(await traceable((n: number) => n, { client })(1)).toBe(1);
    const tree = new RunTree({ name: 'by hand', client });
    await tree.postRun();
    await tree.patchRun();
  });

  test('is not called while tracing is off', async () => {
    const client = fakeClient();
    vi.stubEnv('RUNSPAN_TRACING', 'false');
    expect(await traceable((n: number) => n, { client })(1)).toBe(1);
    expect(await traceable((n: number) => n, { client, tracingEnabled: false })(1)).toBe(1);
    expect(client.createRun).not.toHaveBeenCalled();
    expect(await traceable((n: number) => n, { client, tracingEnabled: true })(1)).toBe(1);
    expect(client.createRun).toHaveBeenCalledOnce();
  });

  test('may be a client with spies, also on a function that is already traced, and still records', async () => {
    const receiver = await service();
    const client = new Client();
    const inner = traceable((n: number) => n, { name: 'inner', client });
    const outer = traceable(async (n: number) => inner(n), { name: 'outer', client });
    const createRun = vi.spyOn(client, 'createRun');
    const updateRun = vi.spyOn(client, 'updateRun');
    expect(await outer(1)).toBe(1);
    const tree = new RunTree({ name: 'by hand', client });
    await tree.postRun();
    await tree.end({ b: 2 });
    await tree.patchRun();
    expect([createRun.mock.calls.length, updateRun.mock.calls.length]).toEqual([3, 3]);
    await client.flush();
    const runs = await receiver.runs({});
    expect(runs.map(({ name, outputs, end_time }) => [name, outputs, end_time !== undefined])).toEqual([
      ['outer', { outputs: 1 }, true],
      ['inner', { outputs: 1 }, true],
      ['by hand', { b: 2 }, true],
    ]);
    expect(runs[1]?.parent_run_id).toBe(runs[0]?.id);
  });
});

describe('replicas', () => {
  const shape = (runs: Awaited<ReturnType<Receiver['runs']>>) =>
    runs
      .map((run) => {
        const parent = runs.find(({ id }) => id === run.parent_run_id)?.name;
        const isPlaced = run.dotted_order.endsWith(run.id) && run.dotted_order.includes(run.trace_id);
        return [run.session_name, run.name, parent, run.inputs, run.outputs, isPlaced];
      })
      .sort((a, b) => String(a).localeCompare(String(b)));
  const runsOf = (project: string) => [
    [project, 'answer', undefined, { input: 1 }, { outputs: 2 }, true],
    [project, 'search', 'answer', { input: 1 }, { outputs: 2 }, true],
  ];

  test.each<[string, (other: string) => Replica[], string[], string[]]>([
    ['two projects', () => [['one'], ['two', {}]], ['one', 'two'], []],
    ['one service and another', (apiUrl) => [{ projectName: 'one' }, { apiUrl, apiKey: 'key' }], ['one'], ['default']],
    ['the project of the run itself', () => [['default'], ['two']], ['default', 'two'], []],
  ])('send the runs of a traced function to %s', async (_, replicas, here, there) => {
    const [receiver, other] = [await service(), await createReceiver()];
    onTestFinished(() => other.close());
    vi.stubEnv('RUNSPAN_TRACING', 'true');
    onTestFinished(() => void vi.unstubAllEnvs());
    const search = traceable((n: number) => n + 1, { name: 'search' });
    const answer = traceable(async (n: number) => search(n), { name: 'answer', replicas: replicas(other.url) });
    expect(await answer(1)).toBe(2);
    await new Client().flush();
    expect(shape(await receiver.runs({}))).toEqual(here.flatMap(runsOf));
    expect(shape(await other.runs({}))).toEqual(there.flatMap(runsOf));
  });

  test('send trees, with the fields that they update', async () => {
    const receiver = await service();
    const example = '0193b3a0-6666-4000-8000-000000000001';
    const tree = new RunTree({
      name: 'by hand',
      inputs: { a: 1 },
      replicas: [{ projectName: 'one', primary: true }, ['two', { reference_example_id: example }]],
    });
    await tree.postRun();
    const child = tree.createChild({ name: 'child' });
    await child.postRun();
    for (const each of [child, tree]) {
      await each.end({ b: 2 });
      await each.patchRun();
    }
    await new Client().flush();
    const runs = await receiver.runs({});
    expect(shape(runs)).toEqual([
      ['one', 'by hand', undefined, { a: 1 }, { b: 2 }, true],
      ['one', 'child', 'by hand', {}, { b: 2 }, true],
      ['two', 'by hand', undefined, { a: 1 }, { b: 2 }, true],
      ['two', 'child', 'by hand', {}, { b: 2 }, true],
    ]);
    const [first, second] = ['one', 'two'].map((project) => runs.find((run) => run.session_name === project));
    expect([first?.id, first?.reference_example_id]).toEqual([tree.id, undefined]);
    expect(second?.reference_example_id).toBe(example);
  });

  test('of a client with a mask receive only what the mask returns', async () => {
    const receiver = await service();
    const client = new Client({ hideInputs: async () => ({ masked: true }), hideOutputs: () => ({ masked: true }) });
    await traceable((text: string) => text, { name: 'answer', client, replicas: [['one'], ['two']] })('hunter2');
    await client.flush();
    const runs = await receiver.runs({});
    expect(runs.map(({ inputs, outputs }) => [inputs, outputs])).toEqual([
      [{ masked: true }, { masked: true }],
      [{ masked: true }, { masked: true }],
    ]);
  });
});

test('`fetchImplementation` sends the requests of a client', async () => {
  const receiver = await createReceiver();
  onTestFinished(() => receiver.close());
  vi.stubEnv('RUNSPAN_TRACING', 'true');
  onTestFinished(() => void vi.unstubAllEnvs());
  const urls: string[] = [];
  const fetchImplementation = vi.fn<typeof fetch>((url, init) => {
    urls.push(String(url).replace(receiver.url, ''));
    return fetch(url, init);
  });
  const client = new Client({ apiUrl: receiver.url, fetchImplementation });
  onTestFinished(async () => void (await client.exporter?.close()));
  const id = await traceable(() => getCurrentRunTree().id, { name: 'answer', client })();
  await client.flush();
  await client.createFeedback(id, 'helpful', { score: 1 });
  expect((await receiver.runs({})).map(({ name }) => name)).toEqual(['answer']);
  expect(urls).toEqual(expect.arrayContaining(['/runs/multipart', '/feedback']));
});
