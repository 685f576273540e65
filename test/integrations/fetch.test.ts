// Model calls that programs make with `fetch`, and the runs that they become.
import OpenAI from 'openai';
import { describe, expect, onTestFinished, test } from 'vitest';
import { recordFetch } from '../../src/integrations/fetch/record-fetch.ts';
import { record } from '../instrument/recorder.ts';
import { bareClient, chunksOf, localModel, lookUp, onlyRun, tea } from './local-openai.ts';

/** Starts the local model, and records the runs of one test. */
async function recorded() {
  const recorder = record();
  onTestFinished(recordFetch());
  const model = await localModel();
  return { recorder, model, client: bareClient(model, { maxRetries: 0 }), only: () => onlyRun(recorder.runs) };
}

const ask = { model: 'small', messages: tea };
const answered = { role: 'assistant', content: 'You said: What is tea?' };

describe('a chat completion', () => {
  test('becomes a run with messages, parameters, tools and tokens', async () => {
    const { client, only } = await recorded();
    const completion = await client.chat.completions.create({ ...ask, temperature: 0.5, max_completion_tokens: 9, tools: [lookUp] });
    expect(completion.choices[0]?.message.tool_calls).toHaveLength(1);
    expect(only()).toMatchObject({
      name: 'openai.chat.completions',
      run_type: 'llm',
      inputs: { messages: tea },
      outputs: { choices: [{ message: { role: 'assistant' } }] },
      extra: {
        metadata: {
          ls_provider: 'openai',
          ls_model_type: 'chat',
          ls_model_name: 'small',
          ls_temperature: 0.5,
          ls_max_tokens: 9,
          ls_invocation_params: { tools: [lookUp] },
        },
      },
    });
  });

  test('is recorded whole if it is streamed, with the time of the first token', async () => {
    const { client, only } = await recorded();
    const stream = await client.chat.completions.create({
      ...ask,
      stream: true,
      stream_options: { include_usage: true },
    });
    expect(await chunksOf(stream)).not.toHaveLength(0);
    const run = only();
    expect(run).toMatchObject({ outputs: { choices: [{ message: answered }] }, events: [{ name: 'new_token' }] });
    expect(run.outputs).toHaveProperty('usage_metadata.input_tokens', 3);
    expect(run.end_time).toBeDefined();
  });
});
