import { beforeEach, describe, expect, test, vi } from 'vitest';
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
  test.each<[string, object, Record<string, string>, string, string[]]>([
    ['is an option', { project: { id: ID } }, {}, `id ${ID}`, []],
    ['overrides a variable with a name', { project: { id: ID } }, { RUNSPAN_PROJECT: 'shop' }, `id ${ID}`, []],
    ...[{ id: 7 }, { id: '' }, {}].map((project): [string, object, Record<string, string>, string, string[]] => [
      `is ignored with a log line if it is ${JSON.stringify(project)}`,
      { project },
      {},
      'name default',
      ['`project`'],
    ]),
    [
      'has no option and no variable of its own',
      { projectId: ID },
      { RUNSPAN_PROJECT_ID: ID },
      'name default',
      ['`projectId`'],
    ],
  ])('%s', async (_, options, environment, expected, named) => {
    const server = await service();
    for (const [name, value] of Object.entries(environment)) vi.stubEnv(name, value);
    const { configure, flush, startRun } = await freshPackage();
    const lines: string[] = [];
    configure({ endpoint: server.url, ...options, log: (level, line) => level !== 'debug' && void lines.push(line) });
    startRun({ name: 'ask' }).end();
    await flush();
    expect(projects(server.received)).toEqual([`post ask ${expected}`]);
    expect(lines).toEqual(named.map((name) => expect.stringContaining(name)));
  });

  test('applies to a run and its nested runs, in posts and patches', async () => {
    const server = await service();
    const { configure, flush, startRun, traceable, withRun } = await freshPackage();
    configure({ endpoint: server.url, project: 'shop', log: 'silent' });
    const run = startRun({ name: 'ask', project: { id: ID } });
    await flush();
    const find = traceable(() => 1, { name: 'find' });
    const inside = () => {
      find();
      find.with({ name: 'named', project: 'other' })();
      traceable(() => 1, { name: 'moved', project: { id: OTHER } })();
    };
    withRun(run, inside);
    run.end();
    traceable(() => 1, { name: 'again', project: { id: ID } }).with({ project: 'back' })();
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

  test('is copied, so that a later change of the object changes no run', async () => {
    const server = await service();
    const { configure, flush, startRun } = await freshPackage();
    const [ofExporter, ofRun] = [{ id: ID }, { id: OTHER }];
    configure({ endpoint: server.url, project: ofExporter, log: 'silent' });
    startRun({ name: 'one' }).end();
    startRun({ name: 'two', project: ofRun }).end();
    ofExporter.id = ofRun.id = 'changed';
    await flush();
    expect(projects(server.received).sort()).toEqual([`post one id ${ID}`, `post two id ${OTHER}`]);
  });

  test('is sent in headers, and read from them only with `accept`', async () => {
    const server = await service();
    const { configure, flush, fromHeaders, startRun, toHeaders, withRun } = await freshPackage();
    configure({ endpoint: server.url, log: 'silent' });
    const headers = toHeaders(startRun({ name: 'ask', project: { id: ID } }));
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
      spanProcessors: [new RunSpanProcessor({ project: { id: ID }, shouldExport: 'all' })],
    });
    provider.getTracer('t').startSpan('span').end();
    const handler = new RunspanCallbackHandler({ project: { id: OTHER } });
    handler.handleChainStart({}, {}, ID, undefined, [], {}, 'chain', 'step');
    handler.handleChainEnd({}, ID);
    await flush();
    expect(projects(server.received).sort()).toEqual([`post span id ${ID}`, `post step id ${OTHER}`]);
    expect(seen).toEqual([ID, OTHER]);
  });

  test('selects the runs in the receiver', async () => {
    const receiver = await startReceiver();
    const { configure, flush, startRun } = await freshPackage();
    configure({ endpoint: receiver.url, project: { id: ID }, log: 'silent' });
    startRun({ name: 'ask' }).end();
    expect(await flush()).toEqual({ ok: true, pending: 0 });
    const [run] = await receiver.runs({ project: ID });
    expect(run).toMatchObject({ name: 'ask', session_id: ID });
    expect(run).not.toHaveProperty('session_name');
  });
});
