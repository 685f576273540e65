import type { Project } from './project.ts';

export const INSTRUMENTATION: string = `export async function register() {
  if (process.env.NEXT_RUNTIME === 'nodejs') await import('runspan/register');
}`;

const AUTOMATIC = 'runspan/register records the model calls';
const CLIENT = 'optional, to set tags and metadata for a client';
const WRAPPER = 'only needed before Node 22.15 or in a bundle';

/**
 * What to add to a program, by dependency. Each key lists package names, separated by spaces. The first line of each
 * text is the reason, and the last line is a documentation page. The lines between are code for an ES module.
 */
export const ADVICE: Readonly<Record<string, string>> = {
  'express fastify hono @nestjs/core': `${AUTOMATIC}\ndocs/servers.md`,
  wrangler: `add the variables to .dev.vars, and deliver the runs of each request
import 'runspan/register';
import { env } from 'cloudflare:workers';
import { configure, withFlush } from 'runspan';
configure({ endpoint: env.RUNSPAN_ENDPOINT, apiKey: env.RUNSPAN_API_KEY });
export default { fetch: withFlush(handle) };
docs/runtimes.md`,
  'serverless sst aws-cdk-lib @types/aws-lambda': `deliver the runs before Lambda freezes the process
import 'runspan/register';
import { withFlush } from 'runspan';
export const handler = withFlush(handle);
docs/serverless.md`,
  'vitest jest': `optional, to check the runs in tests
import { recordRuns } from 'runspan/testing';
const recorder = recordRuns();
docs/testing.md`,
  openai: `${CLIENT}
import { wrapOpenAI } from 'runspan/openai';
const client = wrapOpenAI(new OpenAI());
docs/openai.md`,
  '@anthropic-ai/sdk': `${CLIENT}
import { wrapAnthropic } from 'runspan/anthropic';
const client = wrapAnthropic(new Anthropic());
docs/anthropic.md`,
  '@aws-sdk/client-bedrock-runtime': `${CLIENT}
import { wrapBedrock } from 'runspan/bedrock';
const client = wrapBedrock(new BedrockRuntimeClient());
docs/bedrock.md`,
  '@anthropic-ai/claude-agent-sdk': `${WRAPPER}
import * as sdk from '@anthropic-ai/claude-agent-sdk';
import { wrapClaudeAgentSDK } from 'runspan/claude-agent';
const { query, tool } = wrapClaudeAgentSDK(sdk);
docs/claude-agent.md`,
  ai: `${WRAPPER}, with a version before 7
import * as ai from 'ai';
import { wrapAISDK } from 'runspan/ai';
const { generateText, streamText } = wrapAISDK(ai);
docs/ai-sdk.md`,
  'langchain @langchain/core @langchain/langgraph': `${WRAPPER}
import { RunspanCallbackHandler } from 'runspan/langchain';
await chain.invoke(input, { callbacks: [new RunspanCallbackHandler()] });
docs/langchain.md`,
  '@openai/agents @google/genai @mistralai/mistralai cohere-ai ollama groq-sdk': `${AUTOMATIC}\ndocs/register.md`,
  '@mastra/core': `${WRAPPER}
import { RunspanBridge } from 'runspan/mastra';
const configs = { default: { serviceName, bridge: new RunspanBridge() } };
docs/mastra.md`,
  langsmith: `change the imports from langsmith to runspan/langsmith
import { traceable } from 'runspan/langsmith';
docs/from-langsmith.md`,
  'langfuse @langfuse/otel': `optional, to move the code to runspan\ndocs/from-langfuse.md`,
  '@opentelemetry/sdk-node @opentelemetry/sdk-trace @opentelemetry/sdk-trace-node @opentelemetry/sdk-trace-base @vercel/otel': `optional, to select the spans that become runs
import { RunSpanProcessor } from 'runspan/otel';
new NodeSDK({ spanProcessors: [new RunSpanProcessor()] });
docs/opentelemetry.md`,
  '@sentry/node @sentry/nextjs @sentry/nestjs': `optional, to record Sentry's spans\ndocs/opentelemetry.md#sentry`,
};

export function nextAdvice({ dependencies }: Project, instrumentationFile: string): string {
  const packages = ['ai', '@langchain/core'].filter((name) => name in dependencies);
  // Version 7 is recorded in the bundle, too.
  if (Number(/\d+/.exec(dependencies.ai ?? '')?.[0]) >= 7) packages.shift();
  const external = `// next.config, in the exported object: keep the packages out of the bundle
serverExternalPackages: ['${packages.join("', '")}'],
`;
  return `record the model calls, and deliver the runs on Vercel
// ${instrumentationFile}
${INSTRUMENTATION}
${packages.length > 0 ? external : ''}// each route handler: withFlush delivers its runs on Vercel
import { withFlush } from 'runspan';
export const POST = withFlush(handle);
docs/nextjs.md`;
}
