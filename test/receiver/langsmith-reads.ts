import { expect, test } from 'vitest';
import type { Receiver } from '#src/receiver.ts';
import { readAll } from '../support/read-all.ts';
import { startReceiver } from '../support/receiver.ts';
import { sendJson } from './wire.ts';

// Typed loosely, because the tests run with the clients of two versions.
// biome-ignore lint/suspicious/noExplicitAny: see above
type LangSmith = any;
type ClientClass = new (config: object) => LangSmith;

/** A run of the tests. Times are seconds after the first run. */
interface Fields {
  readonly id: string;
  readonly name: string;
  readonly [field: string]: unknown;
}

export const idOf = (n: number): string => `0193b3a0-1111-7000-8000-${String(n).padStart(12, '0')}`;
const FIRST_MS = Date.now() - 3_600_000;
const timeOf = (second: number): string => new Date(FIRST_MS + second * 1_000).toISOString();
const orderOf = (n: number): string => `${timeOf(n).replace(/[-:.]/g, '').slice(0, -1)}000Z${idOf(n)}`;

export function runOf(n: number, fields: Record<string, unknown> = {}, parent?: number): Fields {
  const tree = parent === undefined ? {} : { parent_run_id: idOf(parent) };
  return {
    id: idOf(n),
    trace_id: idOf(parent ?? n),
    dotted_order: parent === undefined ? orderOf(n) : `${orderOf(parent)}.${orderOf(n)}`,
    ...tree,
    name: `run ${n}`,
    run_type: 'chain',
    session_name: 'shop',
    start_time: timeOf(n),
    end_time: timeOf(n + 1),
    inputs: { n },
    outputs: { n },
    ...fields,
  };
}

export async function send(url: string, runs: readonly Fields[], headers: Record<string, string> = {}): Promise<void> {
  const { status } = await sendJson({ url }, 'POST', '/runs/batch', { post: runs, patch: [] }, headers);
  expect(status).toBe(202);
}

const metadata = (fields: object) => ({ extra: { metadata: fields } });
const RUNS = [
  runOf(0, { name: 'answer', tags: ['beta'], ...metadata({ thread_id: 't1', plan: 'pro' }) }),
  runOf(1, { name: 'model', run_type: 'llm', error: 'Error: away', end_time: timeOf(4) }, 0),
  runOf(2, { name: 'search', run_type: 'tool' }, 0),
  runOf(10, { name: 'answer', session_name: 'other', ...metadata({ thread_id: 't2' }) }),
  runOf(20, { name: 'ask', ...metadata({ thread_id: 't1' }) }),
  runOf(30, { name: 'ask', end_time: undefined, outputs: undefined }),
];
const idsOf = (...numbers: number[]): string[] => numbers.map(idOf);

/** Calls of the client that the receiver does not serve, and a part of the answer. */
const UNSERVED: readonly (readonly [call: string, detail: string, call: (client: LangSmith) => Promise<unknown>])[] = [
  ['createProject', 'DELETE /query/projects', (client) => client.createProject({ projectName: 'new' })],
  ['deleteProject', 'DELETE /query/projects', (client) => client.deleteProject({ projectName: 'shop' })],
  ['createDataset', 'Datasets', (client) => client.createDataset('a')],
  ['listDatasets', 'Datasets', (client) => readAll(client.listDatasets())],
  ['listExamples', 'Datasets', (client) => readAll(client.listExamples({ datasetId: idOf(1) }))],
  ['shareRun', 'export?format=html', (client) => client.shareRun(idOf(0))],
  ['getRunStats', '/query/statistics', (client) => client.getRunStats({ projectNames: ['shop'] })],
  ['listGroupRuns', '/query/threads', (client) => readAll(client.listGroupRuns({ projectName: 'shop', groupBy: 'x' }))],
  ['listAnnotationQueues', 'POST /feedback', (client) => readAll(client.listAnnotationQueues())],
  ['listPrompts', 'Prompts', (client) => readAll(client.listPrompts())],
  ['listFeedbackConfigs', 'POST /feedback', (client) => readAll(client.listFeedbackConfigs())],
];

/** Defines the tests of a LangSmith client that reads from a receiver. */
export function testReads(Client: ClientClass): void {
  for (const [name, detail, request] of UNSERVED) {
    test(`${name} is answered with what to use instead`, async () => {
      const receiver = await startReceiver();
      await send(receiver.url, RUNS);
      const client = new Client({ apiUrl: receiver.url, apiKey: 'key', callerOptions: { maxRetries: 0 } });
      const error = await request(client).catch((thrown: unknown) => thrown);
      expect(error).toMatchObject({ status: 501, message: expect.stringContaining(detail) });
    });
  }

  const started = async (runs: readonly Fields[] = RUNS): Promise<{ receiver: Receiver; client: LangSmith }> => {
    const receiver = await startReceiver();
    await send(receiver.url, runs);
    const client = new Client({ apiUrl: receiver.url, webUrl: receiver.url, apiKey: 'key', autoBatchTracing: false });
    return { receiver, client };
  };
  const found = async (client: LangSmith, query: object): Promise<string[]> =>
    (await readAll<Fields>(client.listRuns(query))).map(({ id }) => id);

  test('readRun returns a run and its children', async () => {
    const { client } = await started();
    const run = await client.readRun(idOf(0), { loadChildRuns: true });

    expect(run).toMatchObject({ name: 'answer', status: 'success', inputs: { n: 0 }, tags: ['beta'] });
    expect(run.child_runs.map(({ id }: Fields) => id)).toEqual(idsOf(1, 2));
    expect(run.child_runs[0]).toMatchObject({ status: 'error', error: 'Error: away', parent_run_ids: idsOf(0) });
    await expect(client.readRun(idOf(999))).rejects.toThrow('is not stored');
  });

  test('a project has one id in projects, runs, links and queries', async () => {
    const { receiver, client } = await started();
    const projects = await readAll<Fields>(client.listProjects());
    const project = await client.readProject({ projectName: 'shop' });
    const run = await client.readRun(idOf(1));

    expect(projects.map(({ name }) => name)).toEqual(['other', 'shop']);
    expect(await readAll(client.listProjects({ nameContains: 'HO' }))).toEqual([project]);
    expect(await client.readProject({ projectId: project.id })).toEqual(project);
    expect(run.session_id).toBe(project.id);
    expect(await client.getRunUrl({ runId: idOf(1) })).toBe(`${receiver.url}/?trace=${idOf(0)}&run=${idOf(1)}`);
    expect(await client.getRunUrl({ run })).toContain(`/projects/p/${project.id}/r/${idOf(1)}`);
    expect(await found(client, { projectId: project.id })).toEqual(await found(client, { projectName: 'shop' }));
    const exists = [{ projectName: 'shop' }, { projectId: project.id }, { projectName: 'none' }];
    expect(await Promise.all(exists.map((one) => client.hasProject(one)))).toEqual([true, true, false]);
    await expect(client.readProject({ projectName: 'none' })).rejects.toThrow('not found');
    await expect(client.readProject({ projectId: idOf(9) })).rejects.toThrow('No stored run belongs to the project');
  });

  test('a project that was sent as an id is read with this id', async () => {
    const fields = { session_name: undefined, session_id: idOf(77) };
    const { client } = await started([runOf(1, fields), runOf(2, { session_id: idOf(78) })]);

    expect(await client.readProject({ projectId: idOf(77) })).toMatchObject({ id: idOf(77), name: idOf(77) });
    expect(await client.readProject({ projectId: idOf(78) })).toMatchObject({ id: idOf(78), name: 'shop' });
    expect(await found(client, { projectId: idOf(77) })).toEqual(idsOf(1));
    expect(await found(client, { projectId: idOf(78) })).toEqual(idsOf(2));
  });

  test('listRuns selects runs by each documented field', async () => {
    const { client } = await started();
    const cases: readonly (readonly [object, string[]])[] = [
      [{ projectName: 'shop' }, idsOf(30, 20, 2, 1, 0)],
      [{ projectName: ['shop', 'other'], isRoot: true }, idsOf(30, 20, 10, 0)],
      [{ projectName: 'shop', executionOrder: 1, order: 'asc' }, idsOf(0, 20, 30)],
      [{ projectName: 'shop', runType: 'llm' }, idsOf(1)],
      [{ projectName: 'shop', error: true }, idsOf(1)],
      [{ projectName: 'shop', error: false, isRoot: false }, idsOf(2)],
      [{ projectName: 'shop', startTime: new Date(FIRST_MS + 2_000) }, idsOf(30, 20, 2)],
      [{ projectName: 'shop', limit: 2 }, idsOf(30, 20)],
      [{ id: idsOf(1, 10, 999) }, idsOf(10, 1)],
      [{ traceId: idOf(0) }, idsOf(2, 1, 0)],
      [{ parentRunId: idOf(0) }, idsOf(2, 1)],
      [{ parentRunId: idOf(999) }, []],
      [{ projectName: 'shop', query: 'away' }, idsOf(1)],
    ];
    for (const [query, ids] of cases) expect(await found(client, query), JSON.stringify(query)).toEqual(ids);
  });

  test('listRuns reads all pages, and returns only the selected fields', async () => {
    const { client } = await started(Array.from({ length: 250 }, (_, n) => runOf(n)));

    expect(await found(client, { projectName: 'shop' })).toEqual(Array.from({ length: 250 }, (_, n) => idOf(249 - n)));
    expect(await found(client, { projectName: 'shop', limit: 120 })).toHaveLength(120);
    const [run] = await readAll<object>(client.listRuns({ projectName: 'shop', limit: 1, select: ['id', 'name'] }));
    const { start_time: _, end_time: __, ...fields } = run as Record<string, unknown>;
    expect(fields).toEqual({ id: idOf(249), name: 'run 249' });
  });

  test('feedback is created, read, updated and deleted by its id', async () => {
    const { client } = await started();
    const [feedbackId, otherId] = idsOf(500, 501);
    await client.createFeedback(idOf(1), 'good', { feedbackId, score: 0, comment: 'bad', sessionId: idOf(9) });
    await client.createFeedback(idOf(1), 'good', { feedbackId: otherId, score: 0.5, sessionId: idOf(9) });
    const created = await client.readFeedback(feedbackId);
    expect(created).toMatchObject({ id: feedbackId, run_id: idOf(1), key: 'good', score: 0, comment: 'bad' });

    await client.updateFeedback(feedbackId, { score: 1, correction: { a: 1 } });
    const updated = await client.readFeedback(feedbackId);
    expect(updated).toEqual({ ...created, score: 1, correction: { a: 1 }, modified_at: expect.any(String) });
    expect((await client.readRun(idOf(1))).feedback_stats).toEqual({ good: { n: 2, avg: 0.75 } });

    await client.deleteFeedback(feedbackId);
    await expect(client.readFeedback(feedbackId)).rejects.toThrow('is not stored');
    await expect(client.updateFeedback(feedbackId, { score: 1 })).rejects.toThrow('is not stored');
    await expect(client.deleteFeedback(feedbackId)).rejects.toThrow('is not stored');
    const left = await readAll<Fields>(client.listFeedback({ runIds: idsOf(1) }));
    expect(left.map(({ id }) => id)).toEqual([otherId]);
    expect(await readAll(client.listFeedback({ runIds: idsOf(1), feedbackKeys: ['bad'] }))).toEqual([]);
  });

  test('listThreads groups the root runs of a project by thread', async () => {
    const { client } = await started();
    const threads = await client.listThreads({ projectName: 'shop' });
    const ids = threads.map(({ thread_id, runs }: { thread_id: string; runs: Fields[] }) => [
      thread_id,
      runs.map(({ id }) => id),
    ]);
    expect(ids).toEqual([['t1', idsOf(0, 20)]]);
  });
}
