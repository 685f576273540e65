// The compiler checks these types: `npm run check` compiles this file. A line below `@ts-expect-error` must not compile.
import type Anthropic from '@anthropic-ai/sdk';
import type { APIPromise } from '@anthropic-ai/sdk';
import type { MessageStream } from '@anthropic-ai/sdk/lib/MessageStream';
import type { Stream } from '@anthropic-ai/sdk/streaming';
import type { BaseCallbackHandler, CallbackHandlerMethods } from '@langchain/core/callbacks/base';
import type { Callbacks } from '@langchain/core/callbacks/manager';
import { type RunnableConfig, RunnableLambda } from '@langchain/core/runnables';
import { FakeListChatModel } from '@langchain/core/utils/testing';
import * as ai from 'ai';
import { MockLanguageModelV3 } from 'ai/test';
import OpenAI, { type AzureOpenAI } from 'openai';
import { expectTypeOf, test } from 'vitest';
import { z } from 'zod';
import { unwrapModel, wrapAISDK, wrapModel } from '#src/ai.ts';
import { unwrapAnthropic, wrapAnthropic } from '#src/anthropic.ts';
import type { WrapOptions } from '#src/index.ts';
import { RunspanCallbackHandler } from '#src/langchain.ts';
import { unwrapOpenAI, wrapOpenAI } from '#src/openai.ts';

declare const azure: AzureOpenAI;
declare const client: Anthropic;
interface Extended extends Anthropic {
  readonly own: number;
}
declare const extended: Extended;

test('a wrapped client of openai has the type of the client', () => {
  class Compatible extends OpenAI {
    readonly region = 'eu';
  }
  () => {
    expectTypeOf(wrapOpenAI(azure)).toEqualTypeOf<AzureOpenAI>();
    expectTypeOf(unwrapOpenAI(azure)).toEqualTypeOf<AzureOpenAI>();
    const wrapped = wrapOpenAI(new Compatible(), { tags: ['a'] });
    expectTypeOf(wrapped).toEqualTypeOf<Compatible>();
    expectTypeOf(wrapped.chat.completions.create).toEqualTypeOf<OpenAI['chat']['completions']['create']>();
    const chat = { completions: { create: (_: { model: string }) => 1 } };
    expectTypeOf(wrapOpenAI({ chat })).toEqualTypeOf<{ chat: typeof chat }>();
    // @ts-expect-error -- not a client
    wrapOpenAI({});
    // @ts-expect-error -- an unknown option
    wrapOpenAI(azure, { runName: 'x' });
  };
});

test('a wrapped client of @anthropic-ai/sdk has the type of the client, with its overloads', () => {
  const question = { model: 'small', max_tokens: 1, messages: [] };
  () => {
    const wrapped = wrapAnthropic(client, { tags: ['a'] });
    expectTypeOf(wrapped).toEqualTypeOf<Anthropic>();
    expectTypeOf(unwrapAnthropic(client)).toEqualTypeOf<Anthropic>();
    expectTypeOf(wrapAnthropic(extended)).toEqualTypeOf<Extended>();
    expectTypeOf(wrapAnthropic({ messages: client.messages })).toEqualTypeOf<{ messages: Anthropic.Messages }>();
    expectTypeOf(wrapped.messages.create(question)).toEqualTypeOf<APIPromise<Anthropic.Message>>();
    expectTypeOf(wrapped.messages.create({ ...question, stream: true })).toEqualTypeOf<
      APIPromise<Stream<Anthropic.RawMessageStreamEvent>>
    >();
    expectTypeOf(wrapped.messages.stream(question)).toEqualTypeOf<MessageStream<null>>();
    // @ts-expect-error -- `max_tokens` is required
    wrapped.messages.create({ model: 'small', messages: [] });
    // @ts-expect-error -- not a client
    wrapAnthropic({});
    // @ts-expect-error -- not a client of Anthropic
    wrapAnthropic({ chat: { completions: { create: () => {} } } });
    // @ts-expect-error -- an unknown option
    wrapAnthropic(client, { runName: 'a' });
    // @ts-expect-error -- not a list
    wrapAnthropic(client, { tags: 'a' });
  };
});

test('no parameter has the type `any`', () => {
  expectTypeOf<Parameters<typeof wrapAnthropic>>().not.toBeAny();
  expectTypeOf<Parameters<typeof wrapAnthropic>[0]['messages']['create']>().returns.toEqualTypeOf<unknown>();
  expectTypeOf<Parameters<typeof wrapOpenAI>>().not.toBeAny();
});

test('the wrapped AI SDK has the types of the SDK', () => {
  const model = new MockLanguageModelV3();
  const weather = ai.tool({
    inputSchema: z.object({ city: z.string() }),
    execute: async ({ city }) => ({ city, rain: true }),
  });
  const call = { model, tools: { weather }, prompt: 'Rain?' };
  expectTypeOf(wrapAISDK(ai)).toEqualTypeOf<typeof ai>();
  expectTypeOf(wrapAISDK({ embed: ai.embed })).toEqualTypeOf<{ embed: typeof ai.embed }>();
  expectTypeOf(wrapModel(model)).toEqualTypeOf<MockLanguageModelV3>();
  expectTypeOf(unwrapModel(model)).toEqualTypeOf<MockLanguageModelV3>();
  const { generateText, streamText, generateObject, ToolLoopAgent } = wrapAISDK(ai);
  const [text, bareText] = [() => generateText(call), () => ai.generateText(call)];
  expectTypeOf(text).toEqualTypeOf(bareText);
  const [stream, bareStream] = [() => streamText(call), () => ai.streamText(call)];
  expectTypeOf(stream).toEqualTypeOf(bareStream);
  type Result = Awaited<ReturnType<typeof text>>['staticToolResults'][number];
  expectTypeOf<Result['output']>().toEqualTypeOf<{ city: string; rain: boolean }>();
  const object = () => generateObject({ model, schema: z.object({ rain: z.boolean() }), prompt: 'Rain?' });
  expectTypeOf(object).returns.resolves.toHaveProperty('object').toEqualTypeOf<{ rain: boolean }>();
  const agent = () => new ToolLoopAgent({ model, tools: call.tools });
  expectTypeOf(agent).returns.toEqualTypeOf<ai.ToolLoopAgent<never, typeof call.tools, never>>();
  // @ts-expect-error -- an unknown option
  () => generateText({ model, prompt: 'Rain?', prompts: 'Rain?' });
});

test('LangChain accepts the callback handler wherever it accepts handlers', () => {
  const handler = new RunspanCallbackHandler();
  expectTypeOf(handler).toExtend<CallbackHandlerMethods>();
  expectTypeOf([handler]).toExtend<Callbacks>();
  const others: (BaseCallbackHandler | CallbackHandlerMethods)[] = [handler];
  expectTypeOf(others).toExtend<Callbacks>();
  const config: RunnableConfig = { callbacks: [handler] };
  () => RunnableLambda.from(() => 1).invoke('x', { callbacks: [handler] });
  () => RunnableLambda.from(() => 1).withConfig(config);
  () => new FakeListChatModel({ responses: [], callbacks: [handler] });
  // `handleInterrupt` belongs to the handlers of LangGraph, which is not installed here.
  type Known = keyof CallbackHandlerMethods | 'handleInterrupt';
  expectTypeOf<Extract<keyof RunspanCallbackHandler, `handle${string}`>>().toExtend<Known>();
});

test('wrappers and the callback handler have options of known names and types', () => {
  expectTypeOf<keyof WrapOptions>().toEqualTypeOf<
    | ('threadId' | 'userId' | 'tags' | 'metadata' | 'project' | 'exporter')
    | ('name' | 'hideInputs' | 'hideOutputs' | 'enabled')
  >();
  expectTypeOf(RunspanCallbackHandler).constructorParameters.toEqualTypeOf<[options?: WrapOptions | undefined]>();
  // @ts-expect-error -- an unknown option
  () => new RunspanCallbackHandler({ runType: 'tool' });
  // @ts-expect-error -- not a list
  () => new RunspanCallbackHandler({ tags: 'a' });
});
