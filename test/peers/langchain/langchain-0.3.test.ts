import '@langchain/core-0.3/context';
import { AIMessage } from '@langchain/core-0.3/messages';
import { StringOutputParser } from '@langchain/core-0.3/output_parsers';
import { ChatPromptTemplate } from '@langchain/core-0.3/prompts';
import { RunnableLambda } from '@langchain/core-0.3/runnables';
import { tool } from '@langchain/core-0.3/tools';
import { FakeListChatModel, FakeStreamingChatModel } from '@langchain/core-0.3/utils/testing';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { traceable } from '#src/index.ts';
import { RunspanCallbackHandler } from '#src/langchain.ts';
import { record, treeOf } from '../../instrument/recorder.ts';

const callbacks = [new RunspanCallbackHandler()];
const leaf = traceable(async () => 'leaf', { name: 'leaf' });

describe('@langchain/core 0.3', () => {
  it('is recorded the same, with what is traced inside of its steps', async () => {
    const recorder = record();
    const search = tool(async () => leaf(), { name: 'search', description: 'searches', schema: z.object({}) });
    const chain = RunnableLambda.from(async () => ({ text: await search.invoke({}) }))
      .withConfig({ runName: 'look' })
      .pipe(ChatPromptTemplate.fromTemplate('{text}'))
      .pipe(new FakeListChatModel({ responses: ['ok'] }))
      .pipe(new StringOutputParser());
    const ask = traceable(() => chain.invoke('x', { callbacks, runName: 'chain' }), { name: 'ask' });
    expect(await ask()).toBe('ok');

    expect(treeOf(recorder.runs)).toEqual({
      ask: {
        chain: {
          look: { search: { leaf: {} } },
          ChatPromptTemplate: {},
          FakeListChatModel: {},
          StrOutputParser: {},
        },
      },
    });
    const model = recorder.runs.find(({ run_type }) => run_type === 'llm');
    expect(model).toMatchObject({
      inputs: { messages: [{ role: 'user', content: 'leaf' }] },
      outputs: { messages: [{ role: 'assistant', content: 'ok' }] },
    });
    expect(recorder.runs.every(({ end_time }) => end_time !== undefined)).toBe(true);
  });

  it('is recorded with the first token of a stream', async () => {
    const recorder = record();
    const model = new FakeStreamingChatModel({ responses: [new AIMessage('one')] });
    for await (const _ of await model.stream('x', { callbacks }));
    expect(recorder.runs[0]?.outputs).toMatchObject({ messages: [{ role: 'assistant', content: 'one' }] });
    expect(recorder.runs[0]?.events?.map(({ name }) => name)).toEqual(['new_token']);
  });
});
