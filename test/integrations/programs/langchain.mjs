// A program that must print and end the same with and without the handler.
import '@langchain/core/context';
import { BaseCallbackHandler } from '@langchain/core/callbacks/base';
import { AIMessage } from '@langchain/core/messages';
import { StringOutputParser } from '@langchain/core/output_parsers';
import { ChatPromptTemplate } from '@langchain/core/prompts';
import { BaseRetriever } from '@langchain/core/retrievers';
import { RunnableLambda, RunnableParallel } from '@langchain/core/runnables';
import { tool } from '@langchain/core/tools';
import { FakeListChatModel, FakeStreamingChatModel } from '@langchain/core/utils/testing';
import { RunspanCallbackHandler } from 'runspan/langchain';
import { recordRuns } from 'runspan/testing';

const recorder = recordRuns();
const isTraced = process.argv[2] === 'traced';

/** A handler of the program, which prints every step. */
class Own extends BaseCallbackHandler {
  name = 'own';
  awaitHandlers = true;
  handleChainStart = (_, inputs) => console.log('start', JSON.stringify(inputs));
  handleChainEnd = (outputs) => console.log('end', JSON.stringify(outputs?.output ?? outputs));
  handleChainError = (error) => console.log('error', error.message);
}

/** A value that cannot be recorded. */
const hostile = {
  get trap() {
    throw new Error('trap');
  },
  toJSON() {
    throw new Error('toJSON');
  },
};
class Broken extends BaseRetriever {
  lc_namespace = ['test'];
  async _getRelevantDocuments() {
    throw hostile;
  }
}

const callbacks = isTraced ? [new RunspanCallbackHandler()] : [];
const watched = [...callbacks, new Own()];
const chain = ChatPromptTemplate.fromTemplate('Say {what}')
  .pipe(new FakeListChatModel({ responses: ['one two'] }))
  .pipe(new StringOutputParser());

console.log(await chain.invoke({ what: 'it' }, { callbacks: watched }));
console.log(await chain.batch([{ what: 'a' }, { what: 'b' }], { callbacks, maxConcurrency: 1 }));
for await (const chunk of await chain.stream({ what: 'it' }, { callbacks })) console.log(JSON.stringify(chunk));
for await (const _ of await chain.stream({ what: 'it' }, { callbacks })) break;
for await (const { event, name } of chain.streamEvents({ what: 'it' }, { version: 'v2', callbacks }))
  console.log(event, name);

const model = new FakeStreamingChatModel({ responses: [new AIMessage({ content: 'hi', id: 'm1' })] });
console.log(JSON.stringify(await model.invoke('x', { callbacks })));
const map = RunnableParallel.from({ a: () => 1, b: RunnableLambda.from(() => hostile) });
console.log(Object.keys(await map.invoke({}, { callbacks })));
console.log(Object.keys(await RunnableLambda.from((input) => input).invoke(hostile, { callbacks })));

const refuse = tool(
  () => {
    throw new RangeError('refused');
  },
  { name: 'refuse', schema: { type: 'object', properties: {} } },
);
for (const failing of [refuse, new Broken(), RunnableLambda.from(() => Promise.reject(undefined))]) {
  await failing.invoke({}, { callbacks }).then(
    () => console.log('resolved'),
    (error) => console.log(error instanceof Error ? `${error.name}: ${error.message}` : error === hostile || error),
  );
}

if (isTraced && recorder.runs.length < 30) console.log(`only ${recorder.runs.length} runs`);
// This rejection is unhandled.
RunnableLambda.from(() => {
  throw new Error('unhandled');
}).invoke('x', { callbacks });
