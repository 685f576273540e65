import { expect, test } from 'vitest';
import { chosenModel } from '../../server/agent/model.ts';
import { ChatServer } from '../support/chat-server.ts';
import { type SeenEvent, untilEnd } from '../support/events.ts';
import { begin, call, finish, ModelService, words } from '../support/model-service.ts';

const CUT = '{"subagent_type":"researcher","description":"What is a';
const NOBODY = '{"subagent_type":"nobody","description":"What is a heron?"}';

test.each([
  ['alone', [call('c1', 'task', CUT)], ['c1']],
  ['beside one that can be', [call('c0', 'save_note', '{}'), call('c1', 'task', CUT, 1)], ['c0', 'c1']],
])('a call whose arguments cannot be read goes back to the model, which answers: %s', async (_, calls, ids) => {
  await using service = await callingOnce(...calls);
  await using chat = await ChatServer.start({ chatModel: modelOf(service) });
  const events = await untilEnd(chat, 't', await chat.say('t', 'What is a heron?'));
  expect(events.at(-1)?.params.data.event).toBe('completed');
  const told = expect.stringMatching(/^The arguments are no JSON: Unterminated string .*; call it again\.$/);
  expect(messagesIn(events).filter(({ tool_call_id }) => tool_call_id === 'c1')).toEqual([
    expect.objectContaining({ type: 'tool', name: 'task', status: 'error', content: told }),
  ]);
  expect(messagesIn(events).at(-1)).toMatchObject({ type: 'ai', content: [{ type: 'text', text: 'Herons wait.' }] });
  // Once more: what the thread has by now has to be a conversation that such a service takes.
  await untilEnd(chat, 't', await chat.say('t', 'Thanks'));
  expect(service.asked).toHaveLength(3);
  for (const { messages } of service.asked.slice(1)) {
    const sent = messages.flatMap(({ tool_calls = [] }) => tool_calls);
    expect(sent.map(({ id }) => id)).toEqual(ids);
    expect(sent.map((one) => JSON.parse(one.function.arguments))).toEqual(ids.map(() => ({})));
    const results = messages.filter(({ role }) => role === 'tool');
    expect(results.map(({ tool_call_id }) => tool_call_id).sort()).toEqual(ids);
    expect(results.find(({ tool_call_id }) => tool_call_id === 'c1')?.content).toEqual(told);
  }
});

test('a subagent that there is not is told as one that has failed, and the model goes on', async () => {
  await using service = await callingOnce(call('c1', 'task', NOBODY));
  await using chat = await ChatServer.start({ chatModel: modelOf(service) });
  const events = await untilEnd(chat, 't', await chat.say('t', 'What is a heron?'));
  const course = events.filter(
    ({ params }) => params.namespace[0]?.startsWith('tools:') && 'graph_name' in params.data,
  );
  const error = 'There is no subagent nobody; there are researcher, writer';
  expect(course.map(({ params }) => params.data)).toEqual([
    { event: 'started', graph_name: 'nobody', cause: { type: 'toolCall', tool_call_id: 'c1' } },
    { event: 'failed', graph_name: 'nobody', error },
  ]);
  expect(events.at(-1)?.params.data.event).toBe('completed');
  expect(service.asked.at(-1)?.messages.at(-1)?.content).toContain(error);
});

/** A service that answers the first question by these calls, and others by words. */
function callingOnce(...calls: readonly object[]): Promise<ModelService> {
  return ModelService.start(({ messages }, response) => {
    const isFirst = messages.length === 2;
    begin(response, ...(isFirst ? calls : words('Herons wait.')));
    finish(response, isFirst ? 'tool_calls' : 'stop');
  });
}

function modelOf({ url }: ModelService): ReturnType<typeof chosenModel>['model'] {
  return chosenModel({ OPENAI_BASE_URL: url }, 0).model;
}

/** The messages of the last state of the thread. */
function messagesIn(events: readonly SeenEvent[]): readonly Readonly<Record<string, unknown>>[] {
  const last = events.findLast(({ method, params }) => method === 'values' && params.namespace.length === 0);
  return (last?.params.data.messages ?? []) as Readonly<Record<string, unknown>>[];
}
