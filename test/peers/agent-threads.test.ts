import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { AgentThreads, agentServerPaths, MessageAssembler, type ThreadEvent, type ThreadEvents } from '#src/clients.ts';
import { createReceiver } from '#src/receiver.ts';
import { type Agents, startAgents } from './agent-server/agents.ts';
import { cutBehind } from './agent-server/cut.ts';
import { sdkEventIds } from './agent-server/sdk-events.mjs';

const ask = (content: string) =>
  ({ assistant_id: 'agent', input: { messages: [{ type: 'human', content }] } }) as const;

let receiver: Awaited<ReturnType<typeof createReceiver>>;
let agents: Agents;
let threads: AgentThreads;

beforeAll(async () => {
  receiver = await createReceiver({ port: 0 });
  agents = await startAgents(receiver.url);
  threads = new AgentThreads({ url: agents.url, paths: agentServerPaths });
});

afterAll(async () => {
  await threads?.close();
  await agents?.stop();
  await receiver.close();
});

async function all(events: ThreadEvents | Promise<ThreadEvents>): Promise<ThreadEvent[]> {
  const found: ThreadEvent[] = [];
  for await (const event of await events) found.push(event);
  return found;
}

const told = ({ method, params }: ThreadEvent): string =>
  method === 'lifecycle' ? `${params.namespace.join('|').replace(/:[^|]+/g, '')} ${params.data.event}` : method;

describe('the protocol of the in-memory agent server', () => {
  it('makes a thread that has no state, and tells of it', async () => {
    const id = threads.newThreadId();

    await expect(threads.state(id, { bootstrap: false })).rejects.toMatchObject({ code: 'RUNSPAN_NOT_FOUND' });
    expect(await threads.state(id)).toMatchObject({ values: {}, next: [] });
    expect(await threads.state(id, { bootstrap: false })).toMatchObject({ values: {}, next: [] });
  });

  it('gives the events of a run to its end, those of a subagent by their place', async () => {
    const id = threads.newThreadId();

    const events = await all(threads.run(id, ask('weather?')));

    expect(events.filter(({ method }) => method === 'other' || method === 'malformed')).toEqual([]);
    const lifecycle = events.filter(({ method }) => method === 'lifecycle').map(told);
    expect(lifecycle).toEqual(expect.arrayContaining(['weather started', 'weather completed', ' completed']));
    expect(told(events.at(-1) as ThreadEvent)).toBe(' completed');
    const assembler = new MessageAssembler();
    for (const event of events) assembler.take(event);
    expect(assembler.messages.at(-1)).toMatchObject({ text: 'It is sunny in Kiel.', status: 'complete', role: 'ai' });
    const { values } = await threads.state<{ messages: { content: unknown }[] }>(id);
    expect(values.messages).toHaveLength(4);
  });

  it('does not take the end of an earlier run for the end of this one', async () => {
    const id = threads.newThreadId();
    await all(threads.run(id, ask('weather?')));

    const events = await all(threads.run(id, ask('weather?'), { channels: ['lifecycle'] }));

    expect(events.map(told).filter((one) => one.startsWith(' '))).toEqual([' completed']);
    expect(events.at(-1)?.seq).toBeGreaterThan(100);
  });

  it('asks, and goes on with the answer', async () => {
    const id = threads.newThreadId();

    const asked = await all(threads.run(id, ask('approve')));
    expect(told(asked.at(-1) as ThreadEvent)).toBe(' interrupted');
    const request = asked.find((event) => event.method === 'input.requested');
    expect(request?.params.data.payload).toEqual({ question: 'May I?' });

    const { interrupt_id = '' } = request?.params.data ?? {};
    const answered = await all(threads.resume(id, { interrupt_id, response: 'yes' }));
    expect(told(answered.at(-1) as ThreadEvent)).toBe(' completed');
    const { values } = await threads.state<{ messages: { content: unknown }[] }>(id);
    expect(values.messages.at(-1)?.content).toBe('You said yes.');
  });

  it('throws the error of a run that fails behind its last event', async () => {
    const id = threads.newThreadId();
    const events = await threads.run(id, ask('fail'));
    const seen: string[] = [];

    const reading = (async () => {
      for await (const event of events) seen.push(told(event));
    })();

    await expect(reading).rejects.toMatchObject({ code: 'RUNSPAN_RUN_FAILED', detail: 'no such city', threadId: id });
    expect(seen.at(-1)).toBe(' failed');
  });

  it('ends a run that is cancelled', async () => {
    const id = threads.newThreadId();
    const events = await threads.run(id, ask('wait'));

    const reading = all(events);
    await threads.cancel(id, events.runId as string);

    expect(told((await reading).at(-1) as ThreadEvent)).toBe(' interrupted');
  });

  it('goes on where a connection broke, with no event lost or doubled', async () => {
    const id = threads.newThreadId();
    const whole = await all(threads.run(id, ask('weather?')));
    const { url, requests } = await cutBehind(agents.url, '"seq":30,');
    const cut = new AgentThreads({ url, paths: agentServerPaths });

    const events = await cut.events(id);
    const found: (number | undefined)[] = [];
    for await (const { seq } of events) {
      found.push(seq);
      if (seq === whole.at(-1)?.seq) break;
    }

    expect(found).toEqual(Array.from({ length: whole.at(-1)?.seq as number }, (_, at) => at + 1));
    expect(requests.filter((line) => line.startsWith('POST'))).toHaveLength(2);
    await cut.close();
  });

  it("gives the events that the platform's own SDK reads", async () => {
    const id = threads.newThreadId();
    const channels = ['lifecycle', 'messages', 'values', 'tasks', 'updates'];
    const ours = (await all(threads.run(id, ask('weather?'), { channels }))).map(({ event_id }) => event_id);

    const theirs = await sdkEventIds(agents.url, id, channels, ours.at(-1) as string);

    expect(ours.length).toBeGreaterThan(30);
    // The first is the beginning of the run, which this server counts to what was before.
    expect(ours).toEqual(theirs.slice(1));
  });

  it('gives the events of all runs to a reader who was there before', async () => {
    const id = threads.newThreadId();
    const events = await threads.events(id, { channels: ['lifecycle', 'custom'], namespaces: [[]], depth: 0 });
    const seen: string[] = [];
    const reading = (async () => {
      for await (const event of events) {
        seen.push(told(event));
        if (seen.filter((one) => one === ' completed').length === 2) break;
      }
    })();

    await all(threads.run(id, ask('weather?')));
    await all(threads.run(id, ask('weather?')));
    await reading;

    const one = [' running', 'custom', ' completed'];
    expect(seen).toEqual([...one, ...one]);
  });

  it('gives the events of a server that has begun anew behind those that it had before', async () => {
    const before = await startAgents(receiver.url);
    const restarted = new AgentThreads({ url: before.url, paths: agentServerPaths });
    const id = restarted.newThreadId();
    await all(restarted.run(id, ask('weather?')));
    const seen: (number | undefined)[] = [];
    const reader = (await restarted.events(id))[Symbol.asyncIterator]();
    const ends = async (): Promise<void> => {
      for (let step = await reader.next(); step.done !== true; step = await reader.next()) {
        seen.push(step.value.seq);
        if (told(step.value) === ' completed') return;
      }
    };
    await ends();
    const count = seen.length;

    await before.stop();
    const after = await startAgents(receiver.url, Number(new URL(before.url).port));
    onTestFinished(() => after.stop());
    await all(restarted.run(id, ask('weather?')));
    await ends();

    const places = Array.from({ length: count }, (_, at) => at + 1);
    expect(seen).toEqual([...places, ...places]);
    await reader.return?.();
    await restarted.close();
  });

  it('says why it refuses a command', async () => {
    const id = threads.newThreadId();

    const error = await threads.respond(id, { interrupt_id: 'none', response: 1 }).catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ code: 'RUNSPAN_COMMAND_REFUSED', reason: 'no_such_run', command: 'input.respond' });
  });

  it('gives the states of a thread page by page, and starts from an earlier one', async () => {
    const id = threads.newThreadId();
    await all(threads.run(id, ask('weather?')));

    const states = await threads.history(id, { limit: 2 }).toArray(Number.POSITIVE_INFINITY);
    const ids = states.map(({ checkpoint }) => checkpoint?.checkpoint_id);
    expect(new Set(ids).size).toBe(5);

    const [before] = states.filter(({ next }) => next.includes('answer'));
    const checkpoint_id = before?.checkpoint?.checkpoint_id as string;
    const forked = await all(threads.run(id, { ...ask('weather?'), input: null, checkpoint_id }));
    expect(told(forked.at(-1) as ThreadEvent)).toBe(' completed');
    const after = await threads.history(id, { limit: 20 }).toArray(20);
    const branches = after.filter(({ parent_checkpoint }) => parent_checkpoint?.checkpoint_id === checkpoint_id);
    expect(branches.map(({ metadata }) => metadata?.source)).toEqual(['fork', 'loop']);
  });

  it('deletes a thread', async () => {
    const id = threads.newThreadId();
    await threads.state(id);

    await threads.delete(id);

    await expect(threads.state(id, { bootstrap: false })).rejects.toMatchObject({ code: 'RUNSPAN_NOT_FOUND' });
  });
});
