// The servers of docs/servers.md.
import { createServer } from 'node:http';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { localModel } from '../integrations/local-openai.ts';
import { commandsOf } from '../package/snippets.ts';
import { root } from '../support/folders.ts';
import { gate } from '../support/gate.ts';
import { listen } from '../support/listen.ts';
import { startProgram } from '../support/program.ts';
import { startReceiver } from '../support/receiver.ts';
import { compile, guide, projectWith } from './guides.ts';
import { laterNode } from './later-node.ts';

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
  const local = await localModel();
  const server = createServer(async ({ url }, response) => {
    isAsked.open();
    await isAnswering;
    const asked = JSON.stringify({ model: 'small', input: 'Is it raining?' });
    const answer = await fetch(`${local.url}${url}`, { method: 'POST', headers, body: asked });
    response.setHeader('content-type', 'application/json').end(await answer.text());
  });
  onTestFinished(() => void server.close());
  return { isAsked, isAnswering, url: await listen(server) };
}

/** The options of a new NestJS project that change the emitted code. */
const NEST_OPTIONS = '--module nodenext --outDir build --experimentalDecorators --emitDecoratorMetadata --allowJs';

it.each([
  ['Express', 'express.mjs', { code: 0, signal: null }],
  ['Fastify', 'fastify.mjs', { code: 0, signal: null }],
  ['Hono', 'hono.mjs', { code: 0, signal: null }],
  ['NestJS', 'main.js', { code: null, signal: 'SIGTERM' }],
] as const)('a server with %s responds after SIGTERM, and delivers one trace for the request', async (_, main, end) => {
  const [model, receiver] = await Promise.all([startModel(), startReceiver()]);
  const project = projectWith(files, join(root, 'test/peers/today'));
  if (main === 'main.js') compile(project, NEST_OPTIONS, ['main.ts']);

  const command = commands.find((line) => line.endsWith(` ${main}`))?.split(' ') ?? [];
  const args = ['--import', FREE_PORT, ...command.slice(1)];
  const env = { RUNSPAN_ENDPOINT: receiver.url, OPENAI_BASE_URL: `${model.url}/v1`, OPENAI_API_KEY: 'key' };
  const program = startProgram([laterNode(), ...args], env, main === 'main.js' ? join(project, 'build') : project);
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
});

const ASK = `
  const ask = async (input) => {
    const body = JSON.stringify({ model: 'small', input });
    const headers = { 'content-type': 'application/json' };
    const response = await fetch(process.env.OPENAI_BASE_URL + '/responses', { method: 'POST', headers, body });
    return (await response.json()).id;
  };
  const two = async (id) => ({ ids: [typeof (await ask(id)), typeof (await ask('again'))] });
  const fail = async () => {
    await ask('fails');
    throw new Error('of the handler');
  };`;

const UNTOUCHED = {
  Express: `
    import express from 'express';
    const users = express.Router();
    users.post('/:id', async (request, response) => response.json(await two(request.params.id)));
    const app = express().use(express.json()).use('/users', users);
    app.post('/fail', async () => fail());
    app.use((_error, _request, response, _next) => response.status(500).json({}));
    const server = app.listen(3000);
    process.once('SIGTERM', () => server.close());`,
  Fastify: `
    import fastify from 'fastify';
    const app = fastify();
    app.post('/users/:id', (request) => two(request.params.id));
    app.post('/fail', fail);
    await app.listen({ port: 3000 });
    process.once('SIGTERM', () => app.close());`,
  Hono: `
    import { serve } from '@hono/node-server';
    import { Hono } from 'hono';
    const app = new Hono();
    app.post('/users/:id', async (context) => context.json(await two(context.req.param('id'))));
    app.post('/fail', fail);
    app.onError((_error, context) => context.json({}, 500));
    const server = serve({ fetch: app.fetch, port: 3000 });
    process.once('SIGTERM', () => server.close());`,
  NestJS: `
    import 'reflect-metadata';
    import { Controller, Module, Param, Post } from '@nestjs/common';
    import { NestFactory } from '@nestjs/core';
    class Users {
      user(id) {
        return two(id);
      }
      fail() {
        return fail();
      }
    }
    Controller()(Users);
    for (const [name, path] of [['user', 'users/:id'], ['fail', 'fail']]) {
      Post(path)(Users.prototype, name, Object.getOwnPropertyDescriptor(Users.prototype, name));
    }
    Param('id')(Users.prototype, 'user', 0);
    class Application {}
    Module({ controllers: [Users] })(Application);
    const app = await NestFactory.create(Application, { logger: false });
    await app.listen(3000);
    process.once('SIGTERM', () => app.close());`,
};

it.each([
  ['Express', 'POST /users/:id'],
  ['Fastify', 'POST /users/:id'],
  // Hono does not tell Node's request which route it takes, so the path's number becomes ":id".
  ['Hono', 'POST /users/:id'],
  ['NestJS', 'POST /users/:id'],
] as const)('an untouched server with %s delivers one trace for each request', async (name, route) => {
  const [model, receiver] = await Promise.all([startModel(), startReceiver()]);
  model.isAnswering.open();
  const project = projectWith([{ file: 'main.mjs', code: ASK + UNTOUCHED[name] }], join(root, 'test/peers/today'));
  const env = { RUNSPAN_ENDPOINT: receiver.url, OPENAI_BASE_URL: `${model.url}/v1` };
  const args = ['--import', FREE_PORT, '--import', 'runspan/register', 'main.mjs'];
  const program = startProgram([laterNode(), ...args], env, project);
  const [, port] = await program.printed(/port (\d+)\n/);
  const send = (path: string) => fetch(`http://127.0.0.1:${port}${path}`, { method: 'POST', headers, body });
  const responses = [await send('/users/7?token=secret'), await send('/fail')];
  expect(await responses[0]?.json()).toEqual({ ids: ['string', 'string'] });
  expect(responses[1]?.status).toBe(500);
  program.child.kill('SIGTERM');

  expect(await program.ended).toMatchObject({ code: 0, signal: null, stderr: '' });
  const runs = await receiver.runs();
  const [first, , , second] = runs;
  expect(runs.map(({ name, parent_run_id }) => [name, parent_run_id])).toEqual([
    [route, CALLER],
    ['openai.responses', first?.id],
    ['openai.responses', first?.id],
    ['POST /fail', CALLER],
    ['openai.responses', second?.id],
  ]);
  expect([first?.inputs, first?.outputs]).toEqual([{}, undefined]);
  expect([first?.error, second?.error]).toEqual([undefined, 'HTTP 500']);
});
