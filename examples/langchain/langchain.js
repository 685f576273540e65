// A LangChain chain with a retriever, a tool and a model. Needs no key, because the model is one of LangChain's test
// models, which returns fixed answers.
import '@langchain/core/context';
import { Document } from '@langchain/core/documents';
import { StringOutputParser } from '@langchain/core/output_parsers';
import { ChatPromptTemplate } from '@langchain/core/prompts';
import { BaseRetriever } from '@langchain/core/retrievers';
import { RunnableLambda, RunnableSequence } from '@langchain/core/runnables';
import { tool } from '@langchain/core/tools';
import { FakeListChatModel } from '@langchain/core/utils/testing';
import { traceable } from 'runspan';
import { RunspanCallbackHandler } from 'runspan/langchain';

class Guide extends BaseRetriever {
  lc_namespace = ['examples'];

  static lc_name() {
    return 'Guide';
  }

  async _getRelevantDocuments(query) {
    return [new Document({ pageContent: `${query} lies between seven mountains.`, metadata: { page: 12 } })];
  }
}

const forecast = traceable(async (town) => `Rain in ${town}`, { name: 'forecast' });

const weather = tool(({ town }) => forecast(town), {
  name: 'weather',
  description: 'The weather in a town',
  schema: { type: 'object', properties: { town: { type: 'string' } }, required: ['town'] },
});

const guide = new Guide();
const gather = RunnableLambda.from(async (town) => ({
  town,
  weather: await weather.invoke({ town }),
  pages: (await guide.invoke(town)).map(({ pageContent }) => pageContent).join('\n'),
}));

const prompt = ChatPromptTemplate.fromMessages([
  ['system', 'You plan days out. It is known: {pages} {weather}.'],
  ['human', 'What can I do in {town}?'],
]);
const model = new FakeListChatModel({ responses: ['Take an umbrella up the mountain.'] });

const plan = RunnableSequence.from([gather.withConfig({ runName: 'gather' }), prompt, model, new StringOutputParser()]);

// `runspan dev` also turns on LangChain's own tracer, for programs without a handler. With both, every step would be
// recorded twice.
process.env.LANGSMITH_TRACING = 'false';

const callbacks = [new RunspanCallbackHandler()];
for await (const text of await plan.stream('Bergen', { callbacks, runName: 'plan a day' })) process.stdout.write(text);
process.stdout.write('\n');
