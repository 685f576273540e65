import { expect, test } from 'vitest';
import type { AnswerReader } from '../../src/integrations/answer.ts';
import { followEventBody } from '../../src/integrations/event-body.ts';
import { makeRun } from '../run/memory-sink.ts';

/** Joins the text of events. */
const reader: AnswerReader = {
  read: (value) => ({ outputs: { value } }),
  fold: () => {
    let text = '';
    return {
      get characters() {
        return text.length;
      },
      add: (event) => {
        text += (event as { text?: string }).text ?? '';
      },
      answer: () => ({ outputs: { text } }),
    };
  },
};

const bytes = (text: string) => new TextEncoder().encode(text);

/** What is recorded of a body that comes in these chunks and is read to its end. */
async function recordOf(chunks: readonly Uint8Array[]) {
  const { run, record } = makeRun();
  const body = new ReadableStream({
    pull: (controller) => {
      controller.close();
    },
    start: (controller) => {
      for (const chunk of chunks) controller.enqueue(chunk);
    },
  });
  expect(followEventBody({ response: { body } }, run, reader)).toBe(true);
  const seen: unknown[] = [];
  for await (const chunk of body) seen.push(chunk);
  expect(seen).toEqual(chunks);
  return record();
}

const events = 'event: a\ndata: {"text":"grün"}\n\nevent: b\r\ndata: {"text":"er Tee"}\r\n\r\n: ping\n\n';

test.each([
  ['at once', [bytes(events)]],
  ['byte by byte', [...bytes(events)].map((byte) => Uint8Array.of(byte))],
])('takes events that come %s', async (_, chunks) => {
  const record = await recordOf(chunks);
  expect(record).toMatchObject({ outputs: { text: 'grüner Tee' }, events: [{ name: 'new_token' }] });
  expect(record).not.toHaveProperty('error');
});

test.each([
  ['an error of the service', 'data: {"type":"error","error":{"type":"overloaded_error","message":"too much"}}\n\n'],
  ['an error that says nothing', 'data: {"type":"error"}\n\n'],
  ['what is no JSON', 'data: {"text"\n\n'],
])('ends the run with %s, and what came before it', async (_, event) => {
  const record = await recordOf([bytes(events), bytes(event)]);
  expect(record).toMatchObject({ outputs: { text: 'grüner Tee' }, end_time: expect.any(String) });
  expect(record?.error).toMatch(/^(overloaded_error: too much$|error$|SyntaxError: )/);
});

test('is cancelled by leaving it', async () => {
  const { run, record } = makeRun();
  const body = new ReadableStream({ start: (controller) => controller.enqueue(bytes(events)) });
  followEventBody({ response: { body } }, run, reader);
  for await (const _ of body) break;
  expect(record()).toMatchObject({ outputs: { text: 'grüner Tee' }, extra: { metadata: { end_reason: 'cancelled' } } });
});

test.each([[{}], [{ response: {} }], [{ response: { body: null } }], [{ response: { body: {} } }]])(
  'leaves a response without a body alone: %o',
  (props) => {
    const { run } = makeRun();
    expect(followEventBody(props, run, reader)).toBe(false);
    expect(run.isOpen).toBe(true);
  },
);
