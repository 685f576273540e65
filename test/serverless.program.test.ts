import { type ChildProcess, execFileSync } from 'node:child_process';
import { describe, expect, it, onTestFinished } from 'vitest';
import { type IngestServer, ingestServerInTest, type Reply } from './support/ingest-server.ts';
import { readJsonParts } from './support/multipart-reader.ts';
import { moduleText, runNode, type Started, startNode } from './support/program.ts';

/** Starts a function behind a service, and calls it as a platform does. */
async function deployed(reply?: () => Reply, timeoutMs = 20_000) {
  const server = await ingestServerInTest(reply);
  const program = startNode(['test/fixtures/serverless-program.mjs', String(timeoutMs)], {
    RUNSPAN_ENDPOINT: server.url,
  });
  onTestFinished(() => void program.child.kill('SIGKILL'));
  return { server, program, call: (event: string) => call(program, event) };
}

async function call({ child, printed }: Started, event: string): Promise<string> {
  child.stdin?.write(`${event}\n`);
  return (await printed(new RegExp(`^.* to ${event}$`, 'm')))[0];
}

function freeze({ pid }: ChildProcess): void {
  process.kill(Number(pid), 'SIGSTOP');
  while (!execFileSync('ps', ['-o', 'state=', '-p', String(pid)], { encoding: 'utf8' }).startsWith('T'));
}

/** The runs that have arrived whole. */
function ended({ received }: IngestServer): unknown[] {
  const records = received.flatMap((request) => [...readJsonParts(request).values()]);
  return records.filter((record) => record.end_time !== undefined).map(({ name }) => name);
}

describe('a serverless function', () => {
  it('has delivered all runs of a call when it responds', async () => {
    const { server, call } = await deployed();

    expect(await call('first')).toBe('answer to first');
    expect(ended(server)).toEqual(['answer', 'handler']);
    expect(await call('second')).toBe('answer to second');
    expect(ended(server)).toEqual(['answer', 'handler', 'answer', 'handler']);
  });

  it('delivers after a freeze during which its connections were closed', async () => {
    const { server, program, call } = await deployed();
    await call('first');
    freeze(program.child);
    server.disconnect();
    program.child.kill('SIGCONT');

    expect(await call('second')).toBe('answer to second');
    expect(ended(server)).toHaveLength(4);
  });

  it.each(['hangs', 'is unreachable'])('responds within the timeout if the service %s', async (how) => {
    const { server, call } = await deployed(() => 'hold', 100);
    if (how === 'is unreachable') await server.close();

    expect(await call('first')).toBe('answer to first');
  });

  it('waits for an unread response body, for at most the timeout', async () => {
    const program = `
      import { withFlush } from 'runspan';
      const works = [];
      const handler = withFlush(async (request, context) => new Response(new ReadableStream({ pull() {} })), { timeoutMs: 20 });
      const answer = await handler({}, { waitUntil: (work) => works.push(work) });
      await works[0];
      console.log('over', answer.status);
    `;

    expect(await runNode(moduleText(program))).toMatchObject({ code: 0, stdout: 'over 200\n', stderr: '' });
  });
});
