// Agents with a tool, each on another SDK: `replay-agents.mjs <name>`. The variable `TOOL_RESULT` changes the result of the
// tool, and `TOOL_FAILS` makes it fail.
import { traceable } from 'runspan';
import { z } from 'zod';

const question = 'Is it raining in Cork?';
const schema = {
  type: 'object',
  properties: { city: { type: 'string' } },
  required: ['city'],
  additionalProperties: false,
};
const weather = { name: 'weather', description: 'The weather of a city' };

async function look({ city }) {
  if (process.env.TOOL_FAILS) throw new Error('no weather');
  return process.env.TOOL_RESULT ?? `rain in ${city}`;
}
const tool = traceable(look, { name: 'weather', runType: 'tool' });

const agents = {
  async 'openai-chat'() {
    const { OpenAI } = await import('openai');
    const client = new OpenAI();
    const messages = [{ role: 'user', content: question }];
    const tools = [{ type: 'function', function: { ...weather, parameters: schema } }];
    for (;;) {
      const { choices } = await client.chat.completions.create({ model: 'small', messages, tools });
      const [{ message }] = choices;
      if (message.tool_calls === undefined) return message.content;
      messages.push(message);
      for (const { id, function: called } of message.tool_calls)
        messages.push({ role: 'tool', tool_call_id: id, content: await tool(JSON.parse(called.arguments)) });
    }
  },

  async 'openai-responses'() {
    const { OpenAI } = await import('openai');
    const client = new OpenAI();
    const input = [{ role: 'user', content: question }];
    const tools = [{ type: 'function', ...weather, parameters: schema, strict: true }];
    for (;;) {
      const stream = client.responses.stream({ model: 'small', input, tools, reasoning: { effort: 'low' } });
      const { output, output_text } = await stream.finalResponse();
      const calls = output.filter(({ type }) => type === 'function_call');
      if (calls.length === 0) return output_text;
      input.push(...output.map(({ parsed_arguments, ...item }) => item));
      for (const { call_id, arguments: text } of calls)
        input.push({ type: 'function_call_output', call_id, output: await tool(JSON.parse(text)) });
    }
  },

  async anthropic() {
    const { Anthropic } = await import('@anthropic-ai/sdk');
    const client = new Anthropic();
    const messages = [{ role: 'user', content: question }];
    const tools = [{ ...weather, input_schema: schema }];
    for (;;) {
      const thinking = { type: 'enabled', budget_tokens: 1024 };
      const stream = client.messages.stream({ model: 'small', max_tokens: 2048, thinking, messages, tools });
      const { content } = await stream.finalMessage();
      const calls = content.filter(({ type }) => type === 'tool_use');
      if (calls.length === 0) return content.at(-1).text;
      const results = calls.map(async ({ id, input }) => {
        return { type: 'tool_result', tool_use_id: id, content: await tool(input) };
      });
      messages.push({ role: 'assistant', content }, { role: 'user', content: await Promise.all(results) });
    }
  },

  async gemini() {
    const { GoogleGenAI } = await import('@google/genai');
    const tools = [{ functionDeclarations: [{ ...weather, parametersJsonSchema: schema }] }];
    const chat = new GoogleGenAI({}).chats.create({ model: 'gemini-small', config: { tools } });
    const first = await chat.sendMessage({ message: question });
    const [{ name, args }] = first.functionCalls;
    const message = { functionResponse: { name, response: { output: await tool(args) } } };
    let text = '';
    for await (const chunk of await chat.sendMessageStream({ message })) text += chunk.text;
    return text;
  },
};

const frameworks = {
  async 'ai-sdk'() {
    const { openai } = await import('@ai-sdk/openai');
    const { isStepCount, streamText, tool } = await import('ai');
    const tools = {
      weather: tool({ ...weather, inputSchema: z.object({ city: z.string() }), execute: look }),
      time: tool({ description: 'The time', inputSchema: z.object({}), execute: async () => 'noon' }),
    };
    // The local model calls all tools at the same time.
    const prompt = `${question} Ask all.`;
    const result = streamText({ model: openai.chat('small'), tools, prompt, stopWhen: isStepCount(3) });
    return result.text;
  },

  async 'openai-agents'() {
    const { Agent, run, setTraceProcessors, tool } = await import('@openai/agents');
    // The default processor sends the trace to OpenAI.
    setTraceProcessors([]);
    const parameters = z.object({ city: z.string() });
    const agent = new Agent({
      name: 'forecaster',
      instructions: 'Be kind.',
      model: 'small',
      tools: [tool({ ...weather, parameters, execute: look })],
    });
    return (await run(agent, question)).finalOutput;
  },
};

const [name] = process.argv.slice(2);
console.log(await (frameworks[name] ?? traceable(agents[name], { name }))());
