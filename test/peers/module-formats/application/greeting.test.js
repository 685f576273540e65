// Run by Jest with its default configuration, which loads CommonJS.
const { configure, createExporter, flush, RunspanError, startRun, traceable, withRun } = require('runspan');
const { createReceiver } = require('runspan/receiver');
const { matchers, recordRuns } = require('runspan/testing');

expect.extend(matchers);

const greet = traceable(async (name) => ({ text: `Hello ${name}` }), { name: 'greet' });

test.each(['ai', 'anthropic', 'clients', 'langchain', 'langsmith', 'openai', 'otel'])(
  'requires runspan/%s',
  (entry) => {
    expect(Object.keys(require(`runspan/${entry}`))).not.toEqual([]);
  },
);

test('records runs', async () => {
  const recorder = recordRuns();
  await greet('Ada');
  recorder.stop();
  expect(recorder).toHaveRun({ name: 'greet', inputs: { input: 'Ada' }, outputs: { text: 'Hello Ada' }, times: 1 });
  expect(() => recorder.run('missing')).toThrow(RunspanError);
});

test('delivers runs over HTTP, with an attachment, to a store in a file', async () => {
  const store = require('node:path').join(__dirname, 'runs.db');
  const { SqliteStore } = require('runspan/receiver');
  const receiver = await createReceiver({ store: await SqliteStore.open(store) });
  configure({ endpoint: receiver.url });
  const run = startRun({ name: 'request' });
  run.attach('note', Buffer.from('note'), 'text/plain');
  await withRun(run, () => greet('Ada'));
  run.end();
  expect(await flush()).toEqual({ ok: true, pending: 0 });
  const page = await fetch(receiver.url);
  expect(page.headers.get('content-type')).toMatch('text/html');
  expect((await receiver.runs()).map(({ name }) => name).sort()).toEqual(['greet', 'request']);
  await receiver.close();
});

test('delivers runs to a service without multipart', async () => {
  const paths = [];
  const server = require('node:http').createServer((request, response) => {
    paths.push(request.url);
    request.resume();
    // `POST /runs` and `PATCH /runs/{id}`.
    response.writeHead(/^\/runs(\/[0-9a-f-]{36})?$/.test(request.url) ? 202 : 404).end('{}');
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  const exporter = createExporter({ endpoint: `http://127.0.0.1:${server.address().port}` });
  await greet.with({ exporter })('Ada');
  expect(await exporter.flush()).toEqual({ ok: true, pending: 0 });
  expect(paths).toContain('/runs');
  await exporter.close();
  server.close();
});
