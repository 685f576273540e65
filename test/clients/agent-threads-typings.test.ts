// What TypeScript says of these lines is the test: `npm run test:types` compiles this file.
import { describe, expectTypeOf, test } from 'vitest';
import {
  AgentThreads,
  type AssembledMessage,
  agentServerPaths,
  type CommandError,
  type ContentBlock,
  type MessageAssembler,
  type MissedEvents,
  missedEvents,
  type PageList,
  type StartedRun,
  type ThreadEvent,
  type ThreadEvents,
  type ThreadPaths,
  type ThreadResponse,
  type ThreadRunRequest,
  type ThreadState,
} from '../../src/clients.ts';

interface Chat {
  readonly messages: readonly { readonly content: string }[];
}

const threads = new AgentThreads({ url: 'http://127.0.0.1' });

describe('an event of a thread', () => {
  test('is told by its method, and its data by what it is of that', () => {
    const texts = (event: ThreadEvent<Chat>): string | undefined => {
      if (event.method === 'lifecycle') return event.params.data.error;
      if (event.method === 'values') return event.params.data.messages.at(-1)?.content;
      if (event.method === 'input.requested') return event.params.data.interrupt_id;
      if (event.method === 'checkpoints') return event.params.data.id;
      if (event.method === 'malformed') return event.params.data;
      if (event.method === 'tools') {
        const { data } = event.params;
        if (data.event === 'tool-started') return data.tool_name;
        return data.event === 'tool-output-delta' ? data.delta : data.tool_call_id;
      }
      if (event.method === 'messages') {
        const { data } = event.params;
        if (data.event === 'content-block-start') expectTypeOf(data.content).toEqualTypeOf<ContentBlock>();
        if (data.event === 'content-block-delta' && data.delta.type === 'text-delta') return data.delta.text;
        return data.event === 'error' ? data.message : undefined;
      }
      expectTypeOf(event.method).toEqualTypeOf<'updates' | 'tasks' | 'custom' | 'other'>();
      expectTypeOf(event.params.run_id).toEqualTypeOf<string | undefined>();
      expectTypeOf(event.params.namespace).toEqualTypeOf<readonly string[]>();
      return event.name;
    };
    expectTypeOf(texts).toBeFunction();
  });

  test('may have a status that this version does not know', () => {
    const isOver = (event: ThreadEvent): boolean =>
      event.method === 'lifecycle' && ['completed', 'stopped'].includes(event.params.data.event);
    expectTypeOf(isOver).returns.toBeBoolean();
  });

  test('has data that has to be looked at where it is not known', () => {
    const data = (event: ThreadEvent): unknown => {
      if (event.method !== 'other') return undefined;
      // @ts-expect-error -- nothing is known of it
      event.params.data.event;
      return event.params.data;
    };
    expectTypeOf(data).returns.toBeUnknown();
    expectTypeOf(missedEvents).returns.toEqualTypeOf<MissedEvents | undefined>();
  });

  test('is taken by an assembler whatever the state is', () => {
    expectTypeOf<ThreadEvent<Chat>>().toExtend<Parameters<MessageAssembler['take']>[0]>();
    expectTypeOf<MessageAssembler['take']>().returns.toEqualTypeOf<AssembledMessage | undefined>();
  });
});

describe('the calls of threads', () => {
  test('say what they resolve with', () => {
    expectTypeOf(threads.state<Chat>).returns.resolves.toEqualTypeOf<ThreadState<Chat>>();
    expectTypeOf(threads.events<Chat>).returns.resolves.toEqualTypeOf<ThreadEvents<Chat>>();
    expectTypeOf(threads.run<Chat>).returns.resolves.toEqualTypeOf<ThreadEvents<Chat>>();
    expectTypeOf(threads.history<Chat>).returns.toEqualTypeOf<PageList<ThreadState<Chat>>>();
    expectTypeOf(threads.start).returns.resolves.toEqualTypeOf<StartedRun>();
    expectTypeOf<ThreadEvents<Chat>>().toExtend<AsyncIterable<ThreadEvent<Chat>>>();
    expectTypeOf(agentServerPaths).toEqualTypeOf<ThreadPaths>();
  });

  test('take what the protocol has', () => {
    const run: ThreadRunRequest = { input: null, checkpoint_id: 'c' };
    const one: ThreadResponse = { interrupt_id: 'i', response: true, goto: 'plan' };
    const many: ThreadResponse = { responses: [{ interrupt_id: 'i', response: true }], update: {} };
    // @ts-expect-error -- a run has an input
    const without: ThreadRunRequest = { assistant_id: 'agent' };
    // @ts-expect-error -- one or several
    const both: ThreadResponse = { interrupt_id: 'i', response: 1, responses: [] };
    // @ts-expect-error -- a run that is made is the one that is read
    () => threads.run('t', run, { run: { run_id: 'r' } });
    expectTypeOf([run, one, many, without, both]).toBeArray();
  });

  test('reject with a reason that may be of a later version', () => {
    const isGone = ({ reason }: CommandError): boolean => reason === 'no_such_interrupt' || reason === 'expired';
    expectTypeOf(isGone).returns.toBeBoolean();
  });
});
