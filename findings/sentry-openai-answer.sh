#!/usr/bin/env bash
# Sentry's instrumentation of the `openai` package records the two sides of one call in two vocabularies: the request as
# `gen_ai.input.messages` and `gen_ai.system_instructions`, the answer as `gen_ai.response.text`, a JSON list of texts, and not as
# `gen_ai.output.messages`. An answer without text, which only calls a tool, has the text `[""]`, so a reader that takes an absent
# text for "no answer" shows an empty one. The system message does not count in the original length of the messages.
# Prints the versions and the attributes seen. Exit code 1 if they differ.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm init -y >/dev/null
npm install --no-audit --no-fund --ignore-scripts --silent @sentry/node@10.78.0 openai@6.49.0
cat >program.mjs <<'PROGRAM'
import { deepStrictEqual } from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import * as Sentry from '@sentry/node';

const spans = [];
Sentry.init({
  dsn: 'http://key@127.0.0.1:9/1',
  tracesSampleRate: 1,
  sendDefaultPii: true,
  transport: () => ({ send: async () => ({ statusCode: 200 }), flush: async () => true }),
  openTelemetrySpanProcessors: [
    { onStart() {}, onEnd: (span) => void spans.push(span), forceFlush: async () => {}, shutdown: async () => {} },
  ],
});
const { OpenAI } = createRequire(import.meta.url)('openai');
const call = { id: 't', type: 'function', function: { name: 'stock', arguments: '{"of":"tea"}' } };
const messages = [
  { role: 'assistant', content: 'two left' },
  { role: 'assistant', content: null, tool_calls: [call] },
];
const answers = messages.map((message) => ({
  ...{ id: 'c', object: 'chat.completion', model: 'm', usage: { prompt_tokens: 5, completion_tokens: 2, total_tokens: 7 } },
  choices: [{ index: 0, finish_reason: message.tool_calls ? 'tool_calls' : 'stop', message }],
}));
const server = createServer((request, response) => {
  request.resume();
  response.setHeader('content-type', 'application/json');
  response.end(JSON.stringify(answers.shift()));
});
await new Promise((ready) => server.listen(0, '127.0.0.1', ready));
const client = new OpenAI({ apiKey: 'none', baseURL: `http://127.0.0.1:${server.address().port}/v1` });
const asked = [
  { role: 'system', content: 'Be brief.' },
  { role: 'user', content: 'Tea?' },
];
for (const _ of messages) await client.chat.completions.create({ model: 'm', messages: asked });

const seen = spans
  .filter(({ attributes }) => attributes['sentry.op'] === 'gen_ai.chat')
  .map(({ attributes }) =>
    Object.fromEntries(
      Object.entries(attributes).filter(([name]) => /messages|instructions|response\.(text|tool_calls)/.test(name)),
    ),
  );
for (const name of ['@sentry/node', 'openai'])
  console.log(name, JSON.parse(readFileSync(`node_modules/${name}/package.json`, 'utf8')).version);
console.log(seen);
const request = {
  'gen_ai.system_instructions': '[{"type":"text","content":"Be brief."}]',
  'gen_ai.input.messages': '[{"role":"user","content":"Tea?"}]',
  'sentry.sdk_meta.gen_ai.input.messages.original_length': 1,
};
deepStrictEqual(seen, [
  { ...request, 'gen_ai.response.text': '["two left"]' },
  { ...request, 'gen_ai.response.text': '[""]', 'gen_ai.response.tool_calls': JSON.stringify([call]) },
]);
process.exit(0);
PROGRAM
node program.mjs
