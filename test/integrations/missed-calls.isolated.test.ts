// Model calls that are not sent with `fetch`.
import { once } from 'node:events';
import http, { createServer } from 'node:http';
import http2 from 'node:http2';
import * as undici from 'undici';
import { beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest';
import { ownRequests } from '#src/base/own-requests.ts';
import { traceable } from '#src/index.ts';
import { recordFetch } from '#src/integrations/fetch/record-fetch.ts';
import { warnOfMissedCalls } from '#src/register/missed-calls.ts';
import { startRun, withRun } from '#src/run/start-run.ts';
import { record } from '../instrument/recorder.ts';
import { inSpan, setUp } from '../otel/set-up.ts';
import { listen } from '../support/listen.ts';
import { logLines } from '../support/log-lines.ts';

beforeAll(() => warnOfMissedCalls());

const AXIOS = { 'user-agent': 'axios/1.7.2 secret' };
const AWS = { 'user-agent': 'aws-sdk-js/3.1 ua/2.1 secret' };

/** Sends a request as if to the URL. The agent connects to a local server instead. */
async function send(url: string, headers: Record<string, string> = {}, method = 'POST'): Promise<void> {
  const server = createServer((_, response) => response.end());
  const { port } = new URL(await listen(server));
  const agent = new http.Agent();
  const connect = agent.createConnection.bind(agent);
  agent.createConnection = (options, ...rest) =>
    connect({ ...options, host: '127.0.0.1', port: Number(port) }, ...rest);
  const [response] = await once(http.request(url, { agent, method, headers }).end(), 'response');
  await response.toArray();
  agent.destroy();
  await once(server.close(), 'close');
}

function warnings() {
  record();
  return logLines('warn');
}

const line = (host: string, client: string) =>
  `warn: a model call to ${host} is not recorded, because ${client} does not send it with fetch; record it with traceable, or see https://github.com/runspan/runspan/blob/main/docs/fetch.md#limits`;

describe('a warning names the client and the host, once per client', () => {
  test.each([
    ['http://api.openai.com/v1/responses?key=secret', AXIOS, 'axios'],
    ['http://localhost:1234/v1/chat/completions', {}, 'node:http'],
    ['http://localhost:11434/api/chat', {}, 'node:http'],
    ['http://generativelanguage.googleapis.com/v1/models/m:generateContent?key=secret', {}, 'node:http'],
    ['http://bedrock-runtime.eu-west-1.amazonaws.com/model/a%3A0/converse-stream', AWS, 'the AWS SDK'],
    ['http://bedrock-runtime.eu-west-1.amazonaws.com/model/a/invoke', AWS, 'the AWS SDK'],
  ])('%s', async (url, headers, client) => {
    const lines = warnings();
    await send(url, headers);
    await send(url, headers);
    expect(lines).toEqual([line(new URL(url).hostname, client)]);
  });

  test('two clients', async () => {
    const lines = warnings();
    await send('http://api.openai.com/v1/responses', AXIOS);
    await send('http://api.mistral.ai/v1/chat/completions');
    expect(lines).toEqual([line('api.openai.com', 'axios'), line('api.mistral.ai', 'node:http')]);
  });

  test('by undici, but not by its fetch', async () => {
    const lines = warnings();
    const server = createServer((_, response) => response.end());
    const url = `${await listen(server)}/v1/chat/completions`;
    for (const send of [fetch, undici.fetch]) await (await send(url, { method: 'POST' })).text();
    expect(lines).toEqual([]);
    await (await undici.request(url, { method: 'POST' })).body.text();
    server.closeAllConnections();
    await once(server.close(), 'close');
    expect(lines).toEqual([line('127.0.0.1', 'undici')]);
  });

  const isPublished = !process.version.startsWith('v20.');
  test.runIf(isPublished)('over HTTP/2', async () => {
    const lines = warnings();
    const server = http2.createServer((_, response) => response.end());
    const client = http2.connect(await listen(server as never));
    const host = 'bedrock-runtime.eu-west-1.amazonaws.com';
    const headers = { ':method': 'POST', ':path': '/model/a/converse', host, ...AWS };
    const stream = client.request(headers).end().resume();
    await once(stream, 'close');
    client.close();
    server.close();
    await once(server, 'close');
    expect(lines).toEqual([line(host, 'the AWS SDK')]);
  });
});

test.each([
  ['http://api.openai.com/v1/models', 'GET'],
  ['http://api.openai.com/v1/responses', 'GET'],
  ['http://api.openai.com/v1/files', 'POST'],
  ['http://localhost:3000/api/chat', 'POST'],
  ['http://localhost:3000/v1/messages', 'POST'],
  ['http://bedrock-runtime.eu-west-1.amazonaws.com/model/a/other', 'POST'],
])('%s %s is not taken for a model call', async (url, method) => {
  const lines = warnings();
  await send(url, {}, method);
  expect(lines).toEqual([]);
});

describe('there is no warning', () => {
  const call = () => send('http://api.openai.com/v1/responses');

  test('while tracing is off', async () => {
    const lines = logLines('warn');
    await call();
    expect(lines).toEqual([]);
  });

  test('if the application records the call itself', async () => {
    const lines = warnings();
    await traceable(call, { name: 'ask', runType: 'llm' })();
    await withRun(startRun({ name: 'embed', runType: 'embedding' }), call);
    expect(lines).toEqual([]);
  });

  test('if a span records the call, but a span around it does not', async () => {
    const { tracer } = setUp();
    const lines = logLines('warn');
    await inSpan(tracer, 'chat m', async (span) => {
      span.setAttributes({ 'gen_ai.operation.name': 'chat', 'gen_ai.request.model': 'm' });
      await call();
    });
    expect(lines).toEqual([]);
    await inSpan(tracer, 'GET /', call);
    expect(lines).toHaveLength(1);
  });

  test('if a step of LangChain records the call', async () => {
    const { RunspanCallbackHandler } = await import('#src/langchain.ts');
    const { FakeListChatModel } = await import('@langchain/core/utils/testing');
    vi.stubGlobal('fetch', async () => new Response());
    onTestFinished(recordFetch());
    const lines = warnings();
    class OverHttp extends FakeListChatModel {
      override async _generate(...args: Parameters<InstanceType<typeof FakeListChatModel>['_generate']>) {
        await call();
        await fetch('https://api.openai.com/v1/batches', { method: 'POST' });
        return super._generate(...args);
      }
    }
    const model = new OverHttp({ responses: ['tea'] });
    await model.invoke('What?', { callbacks: [new RunspanCallbackHandler()] });
    expect(lines).toEqual([]);
    await model.invoke('What?');
    expect(lines).toHaveLength(2);
  });
});

test('a POST request to a model service that has no reader is one line per path, without query and ids', async () => {
  vi.stubGlobal('fetch', async () => new Response());
  onTestFinished(recordFetch());
  const post = (url: string, own = { method: 'POST' }) => fetch(url, own);
  const batches = 'https://api.openai.com/v1/batches?key=secret';
  const untraced = logLines('warn');
  await post(batches);
  expect(untraced).toEqual([]);
  const lines = warnings();
  const own = { method: 'POST' };
  ownRequests.add(own);
  await post(batches, own);
  await fetch(batches);
  await traceable(post, { name: 'start', runType: 'llm' })(batches);
  const others = [
    'openai.com/v1/files',
    'x.ai/v1/conversations',
    'openai.com/oauth/token',
    'anthropic.com/v1/messages/count_tokens',
    'a.test/v1/x',
  ];
  for (const other of others) await post(`https://api.${other}`);
  expect(lines).toEqual([]);
  const long = `https://api.openai.com/v1/${'s'.repeat(33)}/videos`;
  const predict = 'https://generativelanguage.googleapis.com/v1beta/models/veo-3:predictLongRunning';
  for (const id of [1, 2]) {
    for (const url of [batches, `https://user:secret@api.openai.com/v1/batches/batch_${id}#secret`, long, predict])
      await post(url);
  }
  const paths = ['api.openai.com/v1/batches', 'api.openai.com/v1/batches/*', 'api.openai.com/v1/*/videos'];
  paths.push('generativelanguage.googleapis.com/v1beta/models/*:predictLongRunning');
  const advice = "call it in a function wrapped by traceable with runType 'llm'";
  expect(lines).toEqual(paths.map((path) => `warn: not recorded: POST ${path}; ${advice}`));
});
