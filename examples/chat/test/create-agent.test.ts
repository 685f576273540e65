import { interrupt, MessagesAnnotation, START, StateGraph } from '@langchain/langgraph';
import { AIMessage, createAgent, fakeModel, humanInTheLoopMiddleware, tool } from 'langchain';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { createChat } from '../server/chat.ts';
import { openStorage } from '../server/storage/storage.ts';
import { ChatClient, isEndOf } from './support/chat-server.ts';
import { PostgresServer } from './support/postgres.ts';

/** Returns a client that calls the chat directly, without a server. */
async function clientOf(
  agent: Parameters<typeof createChat>[0]['agent'],
  storage: Awaited<ReturnType<typeof openStorage>>,
) {
  const chat = await createChat({ agent, storage });
  const send: typeof fetch = async (input, init) => chat.app.fetch(new Request(input as string, init));
  return { chat, client: new ChatClient('http://127.0.0.1/api', send) };
}

/** A chat in which the agent wants to call a tool for two cities. `decide` answers, and returns the messages after the question. */
async function weatherChat() {
  const storage = await openStorage({});
  const weather = tool(async ({ city }) => `Rain in ${city}.`, {
    name: 'get_weather',
    description: 'The weather of a city.',
    schema: z.object({ city: z.string() }),
  });
  const calls = ['Oslo', 'Rome'].map((city) => ({ id: `call-${city}`, name: 'get_weather', args: { city } }));
  const agent = createAgent({
    model: fakeModel().respondWithTools(calls).respond(new AIMessage('Done.')),
    tools: [weather],
    middleware: [humanInTheLoopMiddleware({ interruptOn: { get_weather: true } })],
    checkpointer: storage.checkpointer,
  });
  const { chat, client } = await clientOf(agent.graph, storage);
  const events = await client.ask('t', 'How is the weather?');
  const request = events.find(({ method }) => method === 'input.requested')?.params.data;
  const decide = async (...decisions: object[]) => {
    const params = { interrupt_id: request?.interrupt_id, response: { decisions } };
    const { result } = await client.command('t', 'input.respond', params);
    await client.until('t', isEndOf(result.run_id));
    return (await client.state('t')).values.messages.slice(1);
  };
  return { chat, decide };
}

test("the chat runs an agent of LangChain's createAgent, whose actions are decided one by one", async () => {
  const { chat, decide } = await weatherChat();
  const editedAction = { name: 'get_weather', args: { city: 'Bergen' } };
  const [, ...results] = await decide({ type: 'edit', editedAction }, { type: 'approve' });
  expect(results.map(({ content }) => content).sort()).toEqual(['Done.', 'Rain in Bergen.', 'Rain in Rome.']);
  await chat.close();
});

test.each(['SQLite', 'PostgreSQL'])(
  'on %s, nodes that ask at the same time are answered one by one',
  async (engine) => {
    const postgres = engine === 'SQLite' ? undefined : await PostgresServer.start();
    const storage = await openStorage(postgres === undefined ? {} : { postgres: await postgres.emptyDatabase() });
    const node = (name: string) => () => ({
      messages: [{ role: 'assistant', content: `${name}: ${interrupt(name)}` }],
    });
    const agent = new StateGraph(MessagesAnnotation)
      .addNode('one', node('one'))
      .addNode('two', node('two'))
      .addEdge(START, 'one')
      .addEdge(START, 'two')
      .compile({ checkpointer: storage.checkpointer });
    const { chat, client } = await clientOf(agent, storage);
    await client.ask('t', 'Ask');
    const open = async () => (await client.state('t')).tasks.flatMap(({ interrupts }) => interrupts);
    const [one, two] = await open();
    const respond = (interrupt_id: string | undefined, response: string) =>
      client.command('t', 'input.respond', { interrupt_id, response });
    await client.until('t', isEndOf((await respond(one?.id, 'A')).result.run_id));
    expect(await open()).toEqual([two]);
    expect(await respond(one?.id, 'again')).toMatchObject({ error: 'no_such_interrupt' });
    await client.until('t', isEndOf((await respond(two?.id, 'B')).result.run_id));
    const { values } = await client.state('t');
    expect(values.messages.map(({ content }) => content)).toEqual(['Ask', 'one: A', 'two: B']);
    await chat.close();
    await postgres?.close();
  },
);

test('an agent with another checkpointer, or without messages, is refused', async () => {
  const storage = await openStorage({});
  const other = await openStorage({});
  const graph = new StateGraph(MessagesAnnotation).addNode('none', () => ({})).addEdge(START, 'none');
  for (const options of [{}, { checkpointer: other.checkpointer }])
    await expect(createChat({ agent: graph.compile(options), storage })).rejects.toThrow('checkpointer of the storage');
  await storage.store.close();
  await other.store.close();
});
