// A graph whose tool asks another graph: `graph.mjs untouched|wrapped|spans <question>`. A question that contains `fail` or
// `wait` makes the tool fail or wait.
import { AIMessage } from '@langchain/core/messages';
import { tool } from '@langchain/core/tools';
import { END, MessagesAnnotation, START, StateGraph } from '@langchain/langgraph';
import { ToolNode } from '@langchain/langgraph/prebuilt';
import { ChatOpenAI } from '@langchain/openai';
import { z } from 'zod';

const [tracing, question] = process.argv.slice(2);
const model = new ChatOpenAI({ model: 'small', maxRetries: 0 });
const user = (content) => ({ role: 'user', content });

const forecaster = new StateGraph(MessagesAnnotation)
  .addNode('forecast', async ({ messages }) => ({ messages: [await model.invoke(messages)] }))
  .addEdge(START, 'forecast')
  .addEdge('forecast', END)
  .compile();

async function forecast({ city }) {
  const { messages } = await forecaster.invoke({ messages: [user('Forecast, please')] });
  if (city.includes('fail')) throw new Error('no forecast');
  if (city.includes('wait')) await new Promise((resolve) => process.stdin.resume().once('end', resolve));
  return messages.at(-1).content;
}
const weather = tool(forecast, { name: 'weather', schema: z.object({ city: z.string() }) });

const graph = new StateGraph(MessagesAnnotation)
  .addNode('ask', async ({ messages }) => {
    const { content, tool_calls } = await model.bindTools([weather]).invoke(messages);
    // The local model gives the same id to all messages, and a message replaces an earlier one with its id.
    return { messages: [new AIMessage({ content, tool_calls })] };
  })
  .addNode('tools', new ToolNode([weather], { handleToolErrors: false }))
  .addEdge(START, 'ask')
  .addConditionalEdges('ask', ({ messages }) => (messages.at(-1).tool_calls?.length ? 'tools' : END))
  .addEdge('tools', 'ask')
  .compile();

try {
  const { messages } = await graph.invoke({ messages: [user(question)] }, await configOf(tracing));
  process.stdout.write(messages.at(-1).content);
} catch (error) {
  process.stdout.write(error.message);
  process.exitCode = 1;
}

async function configOf(tracing) {
  const metadata = { thread_id: 't1', user_id: 'ada' };
  if (tracing === 'wrapped') {
    const { RunspanCallbackHandler } = await import('runspan/langchain');
    return { metadata, callbacks: [new RunspanCallbackHandler()] };
  }
  if (tracing === 'spans') {
    const { load } = await import('../../otel/load.mjs');
    const { LangChainInstrumentation } = await load('@arizeai/openinference-instrumentation-langchain');
    new LangChainInstrumentation().manuallyInstrument(await import('@langchain/core/callbacks/manager'));
  }
  return { metadata };
}
