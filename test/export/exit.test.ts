import { describe, expect, it } from 'vitest';
import { createReceiver } from '../../src/receiver.ts';
import { ingestServer } from '../support/ingest-server.ts';
import { runNode } from '../support/program.ts';

const exitProgram = (how: string, endpoint: string, exitFlushMs = 20_000) =>
  runNode(['test/fixtures/exit-program.mjs', how, String(exitFlushMs)], { RUNSPAN_ENDPOINT: endpoint });

async function delivered(how: string): Promise<{ names: string[]; code: number | null; stderr: string }> {
  const receiver = await createReceiver({ strict: true });
  const { code, stderr } = await exitProgram(how, receiver.url);
  const runs = await receiver.runs();
  await receiver.close();
  return { names: runs.map(({ name }) => name), code, stderr };
}

const LOST = 'runspan: 2 runs were dropped (closed): the exporter was closed before delivery\n';

describe('the end of a program', () => {
  it('delivers what is queued when it comes by itself', async () => {
    expect(await delivered('natural')).toEqual({ names: ['work', 'work'], code: 0, stderr: '' });
  });

  it('delivers what is recorded after a first end of the event loop would have come', async () => {
    expect((await delivered('timer')).names).toHaveLength(3);
  });

  it('delivers before it when the program shuts tracing down', async () => {
    expect(await delivered('shutdown')).toEqual({ names: ['work', 'work'], code: 0, stderr: '' });
  });

  it('delivers the start of a run that never ended', async () => {
    expect(await delivered('open')).toEqual({ names: ['work', 'work', 'never ended'], code: 0, stderr: '' });
  });

  // Without the bound the program would wait for its request, whose deadline is as long as this test may take.
  it('comes within the exit limit when the service hangs, and says what was lost', async () => {
    await using server = await ingestServer(() => 'hold');

    expect(await exitProgram('natural', server.url, 300)).toMatchObject({
      code: 0,
      signal: null,
      stderr: LOST,
    });
  });

  it('comes within the exit limit when the service takes single runs only, and slowly', async () => {
    await using server = await ingestServer(({ path }) => ({ status: path.endsWith('/multipart') ? 404 : 202 }));
    const { code, stderr } = await exitProgram('many', server.url, 300);

    expect(code).toBe(0);
    expect(stderr).toMatch(/^runspan: \d+ runs were dropped \(closed\)/);
  });

  it('keeps its exit code, and says what was lost, after process.exit()', async () => {
    await using server = await ingestServer();

    expect(await exitProgram('exit', server.url)).toMatchObject({
      code: 3,
      stderr: 'runspan: the process ends with 2 runs not delivered\n',
    });
  });

  it.each(['throw', 'reject'])('is that of an uncaught error after a %s', async (how) => {
    await using server = await ingestServer();
    const { code, stderr } = await exitProgram(how, server.url);

    expect(code).toBe(1);
    expect(stderr).toMatch(/Error: mine\n/);
  });

  it('is not put off by a service that is not there', async () => {
    const server = await ingestServer();
    await server.close();
    const { code, stderr } = await exitProgram('natural', server.url, 2_000);

    expect(code).toBe(0);
    expect(stderr.split('\n')).toEqual([
      expect.stringMatching(
        /^runspan: delivery to http:\/\/127\.0\.0\.1:\d+ failed: nothing listens there;.*\(ECONNREFUSED\)/,
      ),
      LOST.trimEnd(),
      '',
    ]);
  });

  it.each([
    ['http://user:pw@127.0.0.1:1', 'the endpoint holds a user or password'],
    ['nonsense', 'the endpoint is no http or https address'],
  ])('is untouched by the endpoint %s, which is told in one line', async (endpoint, problem) => {
    const { code, stderr } = await exitProgram('natural', endpoint);

    expect(code).toBe(0);
    expect(stderr).toMatch(new RegExp(`^runspan: configuration: ${problem}.*\n$`));
  });
});
