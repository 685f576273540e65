import { beforeEach, describe, expect, test, vi } from 'vitest';
import type { ConfigureOptions } from '#src/index.ts';
import { environmentOf } from './support/environment.ts';
import { freshPackage } from './support/fresh-copy.ts';
import { type IngestServer, ingestServerInTest, type Received } from './support/ingest-server.ts';
import { readJsonParts } from './support/multipart-reader.ts';
import { startReceiver } from './support/receiver.ts';

const ID = '8f14e45f-ceea-467a-9575-6f3d1d2b1c11';
const OTHER = '1679091c-5a88-4faf-afb5-e6087eb1b2dc';

/** Returns the project in each record: `post ask id <id>`, `patch ask name <name>`. */
function projects(received: readonly Received[]): string[] {
  return received.flatMap((request) => {
    const isMultipart = request.headers['content-type']?.startsWith('multipart/') === true;
    const op = request.method === 'PATCH' ? 'patch' : 'post';
    const records: [string, object][] = isMultipart
      ? [...readJsonParts(request)].filter(([part]) => part.split('.').length === 2)
      : [[op, JSON.parse(request.body.toString('utf8'))]];
    return records.map(([part, record]) => {
      const { name, session_id, session_name } = record as Record<string, unknown>;
      const fields = [
        session_id !== undefined && `id ${session_id}`,
        session_name !== undefined && `name ${session_name}`,
      ];
      return [part.split('.')[0], name, ...fields.filter(Boolean)].join(' ');
    });
  });
}

async function service(multipart = true): Promise<IngestServer> {
  return ingestServerInTest(({ path }) => ({ status: multipart || path !== '/runs/multipart' ? 202 : 404 }));
}

beforeEach(() => environmentOf());

describe('a project by its id', () => {
  test.each<[string, ConfigureOptions, Record<string, string>, string, number]>([
    ['is an option', { projectId: ID }, {}, `id ${ID}`, 0],
    ['is a variable', {}, { RUNSPAN_PROJECT_ID: ID }, `id ${ID}`, 0],
    ['overrides a name among variables', {}, { RUNSPAN_PROJECT_ID: ID, RUNSPAN_PROJECT: 'shop' }, `id ${ID}`, 0],
    ['overrides a variable with a name', { projectId: ID }, { RUNSPAN_PROJECT: 'shop' }, `id ${ID}`, 0],
    ['yields to an option with a name', { project: 'shop' }, { RUNSPAN_PROJECT_ID: ID }, 'name shop', 0],
    ['overrides a name among options, in one log line', { project: 'shop', projectId: ID }, {}, `id ${ID}`, 1],
    ['is ignored with a log line if it is not text', { projectId: 7 as never }, {}, 'name default', 1],
  ])('%s', async (_, options, environment, expected, lineCount) => {
    const server = await service();
    for (const [name, value] of Object.entries(environment)) vi.stubEnv(name, value);
    const { configure, flush, startRun } = await freshPackage();
    const lines: string[] = [];
    configure({ endpoint: server.url, ...options, log: (level, line) => level !== 'debug' && void lines.push(line) });
    startRun({ name: 'ask' }).end();
    await flush();
    expect(projects(server.received)).toEqual([`post ask ${expected}`]);
    expect(lines).toEqual(Array(lineCount).fill(expect.stringContaining('`projectId`')));
  });

  test('applies to a run and its nested runs, in posts and patches', async () => {
    const server = await service();
    const { configure, flush, startRun, traceable, withRun } = await freshPackage();
    configure({ endpoint: server.url, project: 'shop', log: 'silent' });
    const run = startRun({ name: 'ask', projectId: ID });
    await flush();
    const find = traceable(() => 1, { name: 'find' });
    const inside = () => {
      find();
      find.with({ name: 'named', project: 'other' })();
      traceable(() => 1, { name: 'moved', projectId: OTHER })();
    };
    withRun(run, inside);
    run.end();
    traceable(() => 1, { name: 'again', projectId: ID }).with({ project: 'back' })();
    await flush();
    expect(projects(server.received).sort()).toEqual([
      `patch ask id ${ID}`,
      'post again name back',
      `post ask id ${ID}`,
      `post find id ${ID}`,
      `post moved id ${OTHER}`,
      'post named name other',
    ]);
  });

  test('is sent in headers, and read from them only with `accept`', async () => {
    const server = await service();
    const { configure, flush, fromHeaders, startRun, toHeaders, withRun } = await freshPackage();
    configure({ endpoint: server.url, log: 'silent' });
    const headers = toHeaders(startRun({ name: 'ask', projectId: ID }));
    expect(headers.baggage).toBe(`runspan-project-id=${ID}`);
    withRun(fromHeaders(headers), () => startRun({ name: 'plain' }).end());
    withRun(fromHeaders(headers, { accept: ['project'] }), () => startRun({ name: 'accepted' }).end());
    await flush();
    expect(projects(server.received).sort()).toEqual([
      `post accepted id ${ID}`,
      `post ask id ${ID}`,
      'post plain name default',
    ]);
  });

  test('is passed to a sampler, and accepted by a span processor and a LangChain handler', async () => {
    const server = await service();
    const seen: string[] = [];
    const { configure, flush } = await freshPackage();
    const { RunSpanProcessor } = await import('#src/otel.ts');
    const { RunspanCallbackHandler } = await import('#src/langchain.ts');
    const { BasicTracerProvider } = await import('@opentelemetry/sdk-trace-base');
    configure({
      endpoint: server.url,
      log: 'silent',
      sampler: ({ project }) => {
        seen.push(project);
        return true;
      },
    });
    const provider = new BasicTracerProvider({
      spanProcessors: [new RunSpanProcessor({ projectId: ID, shouldExport: 'all' })],
    });
    provider.getTracer('t').startSpan('span').end();
    const handler = new RunspanCallbackHandler({ projectId: OTHER });
    handler.handleChainStart({}, {}, ID, undefined, [], {}, 'chain', 'step');
    handler.handleChainEnd({}, ID);
    await flush();
    expect(projects(server.received).sort()).toEqual([`post span id ${ID}`, `post step id ${OTHER}`]);
    expect(seen).toEqual([ID, OTHER]);
  });

  test('selects the runs in the receiver', async () => {
    const receiver = await startReceiver();
    const { configure, flush, startRun } = await freshPackage();
    configure({ endpoint: receiver.url, projectId: ID, log: 'silent' });
    startRun({ name: 'ask' }).end();
    expect(await flush()).toEqual({ ok: true, pending: 0 });
    const [run] = await receiver.runs({ project: ID });
    expect(run).toMatchObject({ name: 'ask', session_id: ID });
    expect(run).not.toHaveProperty('session_name');
  });
});
