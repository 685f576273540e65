#!/usr/bin/env bash
# The AI SDK sets the metadata of a call on its spans before the answer, and an OpenTelemetry span keeps the first 128
# attributes that it gets. So long `metadata` of `experimental_telemetry` takes the place of the result, one attribute after another. A span can say that a call has finished and have no answer and no tokens, or an answer whose tokens are missing,
# with a status that is unset as for any success. What is not there says nothing of the call; only `droppedAttributesCount` tells.
# Prints the versions, and what is left for each number of entries. Exit code 1 if it differs.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm init -y >/dev/null
npm install --no-audit --no-fund --ignore-scripts --silent ai@6.0.326 @opentelemetry/api@1.9.0 @opentelemetry/sdk-trace-base@2.2.0
cat >program.mjs <<'PROGRAM'
import { deepStrictEqual } from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { BasicTracerProvider } from '@opentelemetry/sdk-trace-base';
import { generateText } from 'ai';
import { MockLanguageModelV3 } from 'ai/test';

const ended = [];
const collector = {
  onStart() {},
  onEnd: (span) => void ended.push(span),
  forceFlush: async () => {},
  shutdown: async () => {},
};
const tracer = new BasicTracerProvider({ spanProcessors: [collector] }).getTracer('program');
const model = new MockLanguageModelV3({
  doGenerate: async () => ({
    content: [{ type: 'text', text: 'two left' }],
    finishReason: { unified: 'stop', raw: 'stop' },
    usage: { inputTokens: { total: 5 }, outputTokens: { total: 2 } },
    warnings: [],
  }),
});
const told = { finish: 'ai.response.finishReason', answer: 'ai.response.text', tokens: 'ai.usage.outputTokens' };

const seen = {};
for (const entries of [100, 115, 120, 126]) {
  ended.length = 0;
  const metadata = Object.fromEntries(Array.from({ length: entries }, (_, at) => [`entry_${at}`, at]));
  const telemetry = { isEnabled: true, tracer, metadata };
  await generateText({ model, prompt: 'tea?', experimental_telemetry: telemetry });
  seen[entries] = Object.fromEntries(
    ended.map(({ name, attributes, droppedAttributesCount, status }) => [
      name.replace('ai.generateText', '') || 'whole call',
      [
        ...Object.keys(told).filter((what) => told[what] in attributes),
        `status ${status.code}`,
        `dropped ${droppedAttributesCount}`,
        `metadata ${Object.keys(attributes).filter((key) => key.startsWith('ai.telemetry.metadata.')).length}`,
      ].join(', '),
    ]),
  );
}
for (const name of ['ai', '@opentelemetry/sdk-trace-base'])
  console.log(name, JSON.parse(readFileSync(`node_modules/${name}/package.json`, 'utf8')).version);
console.log(seen);
const whole = 'finish, answer, tokens, status 0, dropped 0';
deepStrictEqual(seen, {
  100: { '.doGenerate': `${whole}, metadata 100`, 'whole call': `${whole}, metadata 100` },
  115: { '.doGenerate': 'finish, answer, status 0, dropped 9, metadata 115', 'whole call': `${whole}, metadata 115` },
  120: { '.doGenerate': 'status 0, dropped 14, metadata 120', 'whole call': 'finish, status 0, dropped 4, metadata 120' },
  126: { '.doGenerate': 'status 0, dropped 20, metadata 123', 'whole call': 'status 0, dropped 10, metadata 123' },
});
PROGRAM
node program.mjs
