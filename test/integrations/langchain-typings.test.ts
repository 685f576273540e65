// What TypeScript says of these lines is the test: `npm run check` compiles this file.
import type { BaseCallbackHandler, CallbackHandlerMethods } from '@langchain/core/callbacks/base';
import type { Callbacks } from '@langchain/core/callbacks/manager';
import { type RunnableConfig, RunnableLambda } from '@langchain/core/runnables';
import { FakeListChatModel } from '@langchain/core/utils/testing';
import { describe, expectTypeOf, test } from 'vitest';
import { RunspanCallbackHandler, type RunspanCallbackHandlerOptions } from '../../src/langchain.ts';

describe('the handler', () => {
  const handler = new RunspanCallbackHandler();

  test('is one to LangChain, in every place where it takes them', () => {
    expectTypeOf(handler).toExtend<CallbackHandlerMethods>();
    expectTypeOf([handler]).toExtend<Callbacks>();
    const config: RunnableConfig = { callbacks: [handler] };
    () => RunnableLambda.from(() => 1).invoke('x', { callbacks: [handler] });
    () => RunnableLambda.from(() => 1).withConfig(config);
    () => new FakeListChatModel({ responses: [], callbacks: [handler] });
  });

  test('stands beside handlers of others', () => {
    const others: (BaseCallbackHandler | CallbackHandlerMethods)[] = [handler];
    expectTypeOf(others).toExtend<Callbacks>();
  });

  test('has every method that it takes part in under the name and with the arguments of LangChain', () => {
    // The last is of the handlers of LangGraph, which is not installed here.
    type Known = keyof CallbackHandlerMethods | 'handleInterrupt';
    type Ours = Extract<keyof RunspanCallbackHandler, `handle${string}`>;
    expectTypeOf<Ours>().toExtend<Known>();
  });

  test('has options of known names and types', () => {
    expectTypeOf<keyof RunspanCallbackHandlerOptions>().toEqualTypeOf<
      'tags' | 'metadata' | 'project' | 'projectId' | 'exporter'
    >();
    // @ts-expect-error -- unknown
    () => new RunspanCallbackHandler({ runType: 'tool' });
    // @ts-expect-error -- no list
    () => new RunspanCallbackHandler({ tags: 'a' });
  });
});
