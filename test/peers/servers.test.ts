// The servers of docs/servers.md.
import { createServer } from 'node:http';
import { join } from 'node:path';
import { createReceiver } from 'runspan/receiver';
import { expect, it, onTestFinished } from 'vitest';
import { startLocalModel } from '../../examples/local-model/server.js';
import { commandsOf } from '../package/snippets.ts';
import { root } from '../support/folders.ts';
import { gate } from '../support/gate.ts';
import { listen } from '../support/listen.ts';
import { startNode } from '../support/program.ts';
import { compile, guide, projectWith } from './guides.ts';

const snippets = guide('docs/servers.md');
const files = snippets.filter(({ file }) => file !== undefined);
const commands = snippets.filter(({ language }) => language === 'sh').flatMap(({ code }) => commandsOf(code));

/** A module that lets servers of the port 3000 listen on a free port, and prints the port. */
const FREE_PORT = `data:text/javascript,${encodeURIComponent(`
  import { Server } from 'node:net';
  const { listen } = Server.prototype;
  Server.prototype.listen = function (where, ...rest) {
    this.once('listening', () => console.log('port', this.address().port));
    const free = typeof where === 'object' ? { ...where, port: 0 } : 0;
    return Reflect.apply(listen, this, [free, ...rest]);
  };
`)}`;

const CALLER = '01989cb5-5b3f-7000-8000-000000000001';
// The server can end when the connection is closed.
const headers = {
  connection: 'close',
  'content-type': 'application/json',
  'runspan-trace': `20260101T000000000000Z${CALLER}`,
};
const body = JSON.stringify({ question: 'Is it raining?', userId: 'ada', threadId: 't1' });

/** Starts a model that answers after `isAnswering` has opened. */
async function startModel() {
  const [isAsked, isAnswering] = [gate(), gate()];
  const local = await startLocalModel();
  const server = createServer(async ({ url }, response) => {
    isAsked.open();
    await isAnswering;
    const asked = JSON.stringify({ model: 'small', input: 'Is it raining?' });
    const answer = await fetch(`${local.url}${url}`, { method: 'POST', headers, body: asked });
    response.setHeader('content-type', 'application/json').end(await answer.text());
  });
  onTestFinished(async () => {
    server.close();
    await local.close();
  });
  return { isAsked, isAnswering, url: await listen(server) };
}

/** The options of a new NestJS project that change the emitted code. */
const NEST_OPTIONS = '--module nodenext --outDir build --experimentalDecorators --emitDecoratorMetadata --allowJs';

it.each([
  ['Express', 'express.mjs', '', { code: 0, signal: null }],
  ['Fastify', 'fastify.mjs', '', { code: 0, signal: null }],
  ['Hono', 'hono.mjs', '', { code: 0, signal: null }],
  ['NestJS', 'main.js', 'nestjs', { code: null, signal: 'SIGTERM' }],
] as const)(
  'a server with %s responds after SIGTERM, and delivers one trace for the request',
  async (_, main, folder, end) => {
    const [model, receiver] = await Promise.all([startModel(), createReceiver()]);
    onTestFinished(() => receiver.close());
    const project = projectWith(files, join(root, 'test/peers', folder));
    if (main === 'main.js') compile(project, NEST_OPTIONS, ['main.ts']);

    const command = commands.find((line) => line.endsWith(` ${main}`))?.split(' ') ?? [];
    const args = ['--import', FREE_PORT, ...command.slice(1)];
    const env = { RUNSPAN_ENDPOINT: receiver.url, OPENAI_BASE_URL: `${model.url}/v1`, OPENAI_API_KEY: 'key' };
    const program = startNode(args, env, main === 'main.js' ? join(project, 'build') : project);
    const [, port] = await program.printed(/port (\d+)\n/);
    const response = fetch(`http://127.0.0.1:${port}/answer`, { method: 'POST', headers, body });
    await model.isAsked;
    program.child.kill('SIGTERM');
    model.isAnswering.open();

    expect(await (await response).json()).toEqual({ text: 'You said: Is it raining?' });
    expect(await program.ended).toMatchObject({ ...end, stderr: '' });
    const runs = await receiver.runs();
    expect(runs.map(({ name, run_type, parent_run_id }) => [name, run_type, parent_run_id])).toEqual([
      ['answer', 'chain', CALLER],
      ['openai.responses', 'llm', runs[0]?.id],
    ]);
    expect(runs[1]?.outputs?.usage).toMatchObject({ input_tokens: 3, output_tokens: 5 });
    for (const { extra } of runs) expect(extra?.metadata).toMatchObject({ user_id: 'ada', thread_id: 't1' });
  },
);
