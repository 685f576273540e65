// Calls version 7 of the AI SDK with its spans of OpenTelemetry.
import { createOpenAI } from '@ai-sdk/openai';
import { OpenTelemetry } from '@ai-sdk/otel';
import { context, trace } from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import { TracerProvider } from '@opentelemetry/sdk-trace';
import * as ai from 'ai';
import { z } from 'zod';

context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
trace.setGlobalTracerProvider(new TracerProvider({}));
ai.registerTelemetry(new OpenTelemetry());

const { chat } = createOpenAI({ baseURL: process.env.MODEL, apiKey: 'key' });
const weather = ai.tool({ inputSchema: z.object({ city: z.string() }), execute: ({ city }) => `rain in ${city}` });
const asked = { model: chat('gpt'), prompt: 'Rain?', tools: { weather }, stopWhen: ai.isStepCount(3) };
await ai.generateText(asked);
await ai.streamText(asked).consumeStream();
