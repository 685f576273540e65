// What TypeScript says of these calls is the test: `npm run check` compiles this file. Where a line has to be an error,
// a missing one is.
import * as ai from 'ai';
import { MockLanguageModelV3 } from 'ai/test';
import { describe, expectTypeOf, test } from 'vitest';
import { z } from 'zod';
import { unwrapModel, wrapAISDK, wrapModel } from '../../src/ai.ts';

const model = new MockLanguageModelV3();
const tools = {
  weather: ai.tool({
    inputSchema: z.object({ city: z.string() }),
    execute: async ({ city }) => ({ city, rain: true }),
  }),
};

describe('the wrapped SDK has the type of the SDK:', () => {
  test('all of it', () => {
    expectTypeOf(wrapAISDK(ai)).toEqualTypeOf<typeof ai>();
    expectTypeOf(wrapAISDK({ generateText: ai.generateText })).toEqualTypeOf<{
      generateText: typeof ai.generateText;
    }>();
  });

  test('the tools and the output that a call infers', () => {
    const { generateText, streamText, generateObject } = wrapAISDK(ai);
    const call = { model, tools, prompt: 'Rain?' };
    const [text, bareText] = [() => generateText(call), () => ai.generateText(call)];
    expectTypeOf(text).toEqualTypeOf(bareText);
    const [stream, bareStream] = [() => streamText(call), () => ai.streamText(call)];
    expectTypeOf(stream).toEqualTypeOf(bareStream);
    type Result = Awaited<ReturnType<typeof text>>['staticToolResults'][number];
    expectTypeOf<Result['output']>().toEqualTypeOf<{ city: string; rain: boolean }>();
    const object = () => generateObject({ model, schema: z.object({ rain: z.boolean() }), prompt: 'Rain?' });
    expectTypeOf(object).returns.resolves.toHaveProperty('object').toEqualTypeOf<{ rain: boolean }>();
    // @ts-expect-error -- there is no such option
    () => generateText({ model, prompt: 'Rain?', prompts: 'Rain?' });
  });

  test('an agent', () => {
    const { ToolLoopAgent } = wrapAISDK(ai);
    const agent = () => new ToolLoopAgent({ model, tools });
    expectTypeOf(agent).returns.toEqualTypeOf<ai.ToolLoopAgent<never, typeof tools, never>>();
  });

  test('a model', () => {
    expectTypeOf(wrapModel(model)).toEqualTypeOf<MockLanguageModelV3>();
    expectTypeOf(unwrapModel(model)).toEqualTypeOf<MockLanguageModelV3>();
  });
});
