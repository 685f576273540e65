import { expect, onTestFinished, test } from 'vitest';
import { fieldsOf } from '#src/payload/fields.ts';
import { SpanSelection } from '#src/receiver/ingest/span-selection.ts';
import { receiverWith } from '#src/receiver/receiver.ts';
import { sendJson } from './wire.ts';

const MODEL = { 'gen_ai.operation.name': 'chat' };
const CLAUDE = { 'span.type': 'tool', 'anthropic.provider': 'firstParty' };

/** Sends requests of spans. `chat<ask!` is a span below `ask` with an attribute of a model call. Returns the tree. */
async function stored(...requests: string[]): Promise<string> {
  const selection = new SpanSelection();
  const select = selection.select.bind(selection);
  const receiver = await receiverWith({}, { select });
  onTestFinished(() => receiver.close());
  const names = new Map<string, string>();
  const idOf = (name: string) => {
    const id = Buffer.from(name.padEnd(8)).toString('hex');
    names.set(id, name);
    return id;
  };
  const spanOf = (text: string) => {
    const [, name = '', parent, mark] = /^([a-z]+)(?:<([a-z]+))?([!*]?)$/.exec(text) ?? [];
    const given = Object.entries(mark === '!' ? MODEL : mark === '*' ? CLAUDE : { 'http.request.method': 'GET' });
    return {
      ...{ traceId: '5b8efff798038103d269b633813fc60c', spanId: idOf(name), name },
      ...(parent && { parentSpanId: idOf(parent) }),
      ...{ startTimeUnixNano: '1795159360123456000', endTimeUnixNano: '1795159361000000000' },
      attributes: given.map(([key, stringValue]) => ({ key, value: { stringValue } })),
    };
  };
  for (const spans of requests) {
    const sent = { resourceSpans: [{ scopeSpans: [{ spans: spans.split(' ').map(spanOf) }] }] };
    expect(await sendJson(receiver, 'POST', '/v1/traces', sent)).toMatchObject({ status: 200, body: {} });
  }
  const runs = await receiver.runs();
  const tree = runs.map(
    ({ name, extra }) => `${name}<${names.get(String(fieldsOf(extra?.metadata?.otel).parent_span_id)) ?? ''}`,
  );
  const metrics = await (await fetch(`${receiver.url}/metrics`)).text();
  return `${tree.sort().join(' ')} -${/left_out_spans_total (\d+)/.exec(metrics)?.[1]}`;
}

test.each<[string, string[], string]>([
  ['a request without a model call is left out', ['health query<health'], ' -2'],
  ['the spans above a model call are stored', ['ask query<ask step<ask chat<step!'], 'ask< chat<step step<ask -1'],
  ['those above may arrive later', ['chat<step!', 'query<step step<ask', 'ask'], 'ask< chat<step step<ask -1'],
  ['a parent that was left out is skipped', ['step<ask', 'chat<step!', 'ask'], 'ask< chat<ask -1'],
  ['so are several', ['inner<outer', 'outer', 'chat<inner!'], 'chat< -2'],
  ['a parent that does not arrive stays', ['chat<gone!'], 'chat<gone -0'],
  ['parents may form a cycle', ['a<b b<a', 'chat<a!'], 'chat<a -2'],
  ['spans of a coding agent are stored', ['tool<turn*', 'turn'], 'tool<turn turn< -0'],
])('%s', async (_, requests, expected) => {
  expect(await stored(...requests)).toBe(expected);
});

test('the number of remembered spans is limited', async () => {
  const others = Array.from(
    { length: 10_000 },
    (_, at) => `x${[...`${at}`].map((digit) => 'abcdefghij'[Number(digit)]).join('')}`,
  );
  expect(await stored('step<ask', others.slice(1).join(' '), 'chat<step!')).toBe('chat<ask -10000');
  expect(await stored('step<ask', others.join(' '), 'chat<step!')).toBe('chat<step -10001');
});
