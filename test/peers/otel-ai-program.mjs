// An application that uses one AI SDK major version with OpenTelemetry, and prints the recorded runs:
// `otel-ai-program.mjs <major> <base URL> [legacy]`. Version 7 creates its spans with a separate package, in one of two
// forms.
import { RunSpanProcessor } from 'runspan/otel';
import { recordRuns } from 'runspan/testing';
import { load as loadEarlier } from './ai-sdk/load.mjs';
import { load as loadLater } from './today/load.mjs';

const [major, baseURL, form] = process.argv.slice(2);
const isLater = major === '7';
const load = isLater ? loadLater : loadEarlier;
const ai = await load(isLater ? 'ai' : `ai${major}`);
const { createOpenAI } = await load(isLater ? '@ai-sdk/openai' : `ai${major}-openai`);
const { z } = await load('zod');
const { context, trace } = await load('@opentelemetry/api');
const { AsyncLocalStorageContextManager } = await load('@opentelemetry/context-async-hooks');
// Version 4 requests a stream's token counts only from OpenAI itself.
const openai = createOpenAI({ baseURL, apiKey: 'key', compatibility: 'strict' });
const recorder = recordRuns();

context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
trace.setGlobalTracerProvider(await tracerProvider());
if (isLater) {
  const { LegacyOpenTelemetry, OpenTelemetry } = await load('@ai-sdk/otel');
  const beside = { usage: true, embedding: true, runtimeContext: true, headers: true, toolChoice: true, schema: true };
  ai.registerTelemetry(form === 'legacy' ? new LegacyOpenTelemetry() : new OpenTelemetry(beside));
}

async function tracerProvider() {
  const { BasicTracerProvider, TracerProvider = BasicTracerProvider } = await load(
    isLater ? '@opentelemetry/sdk-trace' : '@opentelemetry/sdk-trace-base',
  );
  return new TracerProvider({ spanProcessors: [new RunSpanProcessor({ shouldExport: 'all' })] });
}

function asked(functionId, model = 'gpt') {
  const about = { userId: 'ann', sessionId: 'thread-1', tags: ['weather'], tier: 'gold' };
  const included = { userId: true, sessionId: true, tags: true, tier: true };
  return {
    model: openai.chat(model),
    temperature: 0.5,
    ...(major === '4' ? { maxTokens: 100 } : { maxOutputTokens: 100 }),
    maxRetries: 0,
    headers: { 'x-secret': 'hush' },
    ...(isLater
      ? { telemetry: { functionId, includeRuntimeContext: included }, runtimeContext: about }
      : { experimental_telemetry: { isEnabled: true, functionId, metadata: about } }),
  };
}

const schema = z.object({ city: z.string() });
const weather = {
  description: 'The weather.',
  ...(major === '4' ? { parameters: schema } : { inputSchema: schema }),
  execute: async ({ city }) => ({ city, rain: true }),
};
const steps = major === '4' ? { maxSteps: 3 } : { stopWhen: ai.stepCountIs(3) };

async function deeds() {
  const system = isLater ? { instructions: 'Be brief.' } : { system: 'Be brief.' };
  await ai.generateText({ ...asked('forecast'), ...system, prompt: 'Rain?', tools: { weather }, ...steps });
  const type = { [major === '4' ? 'mimeType' : 'mediaType']: 'image/png' };
  const isBytes = !isLater || form === 'legacy';
  const image = isBytes ? Buffer.from(`iVBORw0KGgo${'A'.repeat(37)}`, 'base64') : new URL('https://a.example/b.png');
  const content = [
    { type: 'text', text: 'Where is this?' },
    { type: 'image', image, ...type },
  ];
  await ai.streamText({ ...asked('described'), messages: [{ role: 'user', content }] }).consumeStream();
  const report = z.object({ city: z.string(), rain: z.boolean() });
  // Version 4 would otherwise request the object with a tool.
  await ai.generateObject({ ...asked('reported'), prompt: 'Rain?', schema: report, mode: 'json' });
  await ai.embedMany({ ...asked('embedded'), model: openai.embedding('emb'), values: ['a', 'b'] });
  await ai.generateText({ ...asked('failed', 'broken'), prompt: 'Rain?' }).catch(() => {});
  await abort();
}

async function abort() {
  const controller = new AbortController();
  const abortSignal = controller.signal;
  const options = { ...asked('aborted', 'endless'), prompt: 'Rain?', abortSignal, onError: () => {} };
  let text = '';
  try {
    for await (const word of ai.streamText(options).textStream) {
      text += word;
      if (text === 'It is raining.') controller.abort();
    }
  } catch {
    // Version 4 throws the signal's reason.
  }
}

process.on('unhandledRejection', () => {});
await deeds();
await new Promise((resolve) => setImmediate(resolve));
process.stdout.write(JSON.stringify(recorder.runs));
