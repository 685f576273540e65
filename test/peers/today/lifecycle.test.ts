import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';
import { afterEach, describe, expect, it } from 'vitest';
import { flushedAfter } from '#src/instrument/with-flush.ts';
import { gate } from '../../support/gate.ts';
import { ingestServer } from '../../support/ingest-server.ts';
import { readJsonParts } from '../../support/multipart-reader.ts';
import { moduleText, startNode } from '../../support/program.ts';

const packages = createRequire(new URL('./package.json', import.meta.url));
const urlOf = (name: string): string => pathToFileURL(packages.resolve(name)).href;

interface VercelFunctions {
  waitUntil(promise: Promise<unknown>): void;
}

describe('on Vercel', () => {
  const CONTEXT = Symbol.for('@vercel/request-context');

  afterEach(() => void Reflect.deleteProperty(globalThis, CONTEXT));

  it('the flush goes where the waitUntil of @vercel/functions goes', async () => {
    const { waitUntil } = (await import(urlOf('@vercel/functions'))) as VercelFunctions;
    const works: Promise<unknown>[] = [];
    const context = { waitUntil: (work: Promise<unknown>): void => void works.push(work) };
    Object.assign(globalThis, { [CONTEXT]: { get: () => context } });
    const flushed = gate();
    const own = Promise.resolve('own');
    const handler = async (_request: Request): Promise<Response> => {
      waitUntil(own);
      return Response.json({ answer: 42 }, { status: 201 });
    };
    const flush = async () => {
      await flushed;
      return { ok: true, pending: 0 };
    };
    const response = await flushedAfter(handler, undefined, flush)(new Request('https://example.com'));

    expect(response.status).toBe(201);
    expect(await response.json()).toEqual({ answer: 42 });
    expect(works).toHaveLength(2);
    expect(works[0]).toBe(own);
    flushed.open();
    await Promise.all(works);
  });

  it('the answer waits for the flush where that waitUntil does nothing', async () => {
    const { waitUntil } = (await import(urlOf('@vercel/functions'))) as VercelFunctions;
    let isFlushed = false;
    const handler = async (): Promise<string> => {
      waitUntil(Promise.resolve());
      return 'answer';
    };
    const flush = async () => {
      isFlushed = true;
      return { ok: true, pending: 0 };
    };

    expect(await flushedAfter(handler, undefined, flush)()).toBe('answer');
    expect(isFlushed).toBe(true);
  });
});

describe('a program that uses signal-exit', () => {
  it.each(['first', 'last'])('ends by its signal, with its callbacks called, when that listens %s', async (order) => {
    await using server = await ingestServer();
    const theirs = `onExit((code, signal) => console.log('heard', code, signal));`;
    const ours = `configure({ handleSignals: true }); startRun({ name: 'work' }).end(); await flush();`;
    const program = startNode(
      moduleText(`
        import { configure, flush, startRun } from 'runspan';
        import { onExit } from ${JSON.stringify(urlOf('signal-exit'))};
        ${order === 'first' ? theirs + ours : ours + theirs}
        console.log('ready', process.listenerCount('SIGTERM'));
        setInterval(() => {}, 60_000);
      `),
      { RUNSPAN_ENDPOINT: server.url },
    );
    await program.printed(/ready 2\n/);
    program.child.kill('SIGTERM');

    expect(await program.ended).toEqual({
      code: null,
      signal: 'SIGTERM',
      stdout: 'ready 2\nheard null SIGTERM\n',
      stderr: '',
    });
    const [request] = server.received;
    expect(request && [...readJsonParts(request).values()][0]?.name).toBe('work');
  });
});
