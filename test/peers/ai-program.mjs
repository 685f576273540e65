// Calls one major of the AI SDK, first bare and then wrapped: `ai-program.mjs <major> <base URL>`. Prints the logs of both and
// the runs as JSON.
import { wrapAISDK } from 'runspan/ai';
import { recordRuns } from 'runspan/testing';
import { load as loadEarlier } from './ai-sdk/load.mjs';
import { load as loadLater } from './today/load.mjs';

const [major, baseURL] = process.argv.slice(2);
const load = major === '7' ? loadLater : loadEarlier;
const installed = major === '7' ? ['ai', '@ai-sdk/openai'] : [`ai${major}`, `ai${major}-openai`];
const [ai, { createOpenAI }] = await Promise.all(installed.map(load));
const { z } = await load('zod');
// Major 4 requests the token counts of a stream only in this mode.
const openai = createOpenAI({ baseURL, apiKey: 'key', compatibility: 'strict' });
const recorder = recordRuns();

const report = z.object({ city: z.string(), rain: z.boolean() });

function weather(log) {
  const schema = z.object({ city: z.string() });
  const execute = async ({ city }, { toolCallId }) => {
    log.push(`executes ${toolCallId} for ${city}`);
    return { city, rain: true };
  };
  return {
    description: 'The weather.',
    ...(major === '4' ? { parameters: schema } : { inputSchema: schema }),
    execute,
  };
}

const steps = major === '4' ? { maxSteps: 3 } : { stopWhen: ai.stepCountIs(3) };

async function callAll(sdk) {
  const log = [];
  const asked = () => ({ model: openai.chat('gpt'), prompt: 'Rain?', maxRetries: 0 });
  const withTools = () => ({ ...asked(), tools: { weather: weather(log) }, ...steps });
  const said = ({ text, steps, finishReason }) => log.push([text, steps.length, finishReason]);
  said(await sdk.generateText(withTools()));
  const result = sdk.streamText(withTools());
  for await (const word of result.textStream) log.push(word);
  log.push(await result.text, await result.finishReason, (await result.steps).length);
  // Major 4 would otherwise request the object by a tool.
  const forObject = { ...asked(), schema: report, mode: 'json' };
  log.push((await sdk.generateObject(forObject)).object);
  const objects = sdk.streamObject(forObject);
  for await (const part of objects.partialObjectStream) log.push(part);
  log.push(await objects.object);
  const { embeddings } = await sdk.embedMany({ model: openai.embedding('emb'), values: ['a', 'b'] });
  log.push(embeddings);
  await sdk
    .generateText({ ...asked(), model: openai.chat('broken') })
    .catch(({ name, message }) => log.push([name, message]));
  const onError = ({ error }) => log.push(`onError ${error.name}`);
  const failing = sdk.streamText({ ...asked(), model: openai.chat('broken'), onError });
  await drain(failing, log);
  await abort(sdk, log);
  await leave(sdk, log);
  if (sdk.Experimental_Agent !== undefined) {
    const { model, tools } = withTools();
    said(await new sdk.Experimental_Agent({ model, tools, ...steps }).generate({ prompt: 'Rain?' }));
  }
  return log;
}

async function abort(sdk, log) {
  const controller = new AbortController();
  const model = openai.chat('endless');
  const result = sdk.streamText({ model, prompt: 'Rain?', abortSignal: controller.signal, onError: () => {} });
  let text = '';
  try {
    for await (const word of result.textStream) {
      text += word;
      if (text === 'It is raining.') controller.abort();
    }
    log.push(`${text} and no more`);
  } catch (error) {
    log.push(`${text} and ${error.name}`);
  }
}

/** Reads one word and waits until the runs have ended. */
async function leave(sdk, log) {
  const controller = new AbortController();
  const result = sdk.streamText({ model: openai.chat('long'), prompt: 'Sing.', abortSignal: controller.signal });
  // In version 4, `break` does not cancel the stream.
  const reader = result.textStream.getReader();
  log.push((await reader.read()).value);
  await reader.cancel();
  while (recorder.runs.some((run) => run.end_time === undefined)) await new Promise((resolve) => setImmediate(resolve));
  // Version 7 neither reads nor cancels the rest of the response.
  controller.abort();
}

async function drain(result, log) {
  try {
    for await (const _ of result.textStream);
    log.push('drained');
  } catch (error) {
    log.push(`threw ${error.name}`);
  }
}

process.on('unhandledRejection', (error) => unhandled.push(error.name));
const unhandled = [];
const bare = await callAll(ai);
await new Promise((resolve) => setImmediate(resolve));
const unhandledBare = unhandled.splice(0);
recorder.clear();
const wrapped = await callAll(wrapAISDK(ai));
await new Promise((resolve) => setImmediate(resolve));
process.stdout.write(
  JSON.stringify({ bare: [...bare, unhandledBare], wrapped: [...wrapped, unhandled], runs: recorder.runs }),
);
