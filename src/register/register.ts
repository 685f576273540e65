import { diagnostics } from '../base/diagnostics.ts';
import { ignoreErrors } from '../base/guard.ts';
import { devEnv, env } from '../config/environment.ts';
import { setDefaults } from '../config/options.ts';
import { replaceMethod } from '../instrument/methods.ts';
import { defineOwn, type Method } from '../instrument/results/observer.ts';
import { recordChannel } from '../integrations/ai-sdk/channel.ts';
import { TRACED_MEMBERS, wrapAISDK } from '../integrations/ai-sdk/sdk.ts';
import { tracedSend } from '../integrations/bedrock/client.ts';
import { TRACED_EXPORTS, wrapClaudeAgentSDK } from '../integrations/claude-agent/sdk.ts';
import { type CallFilter, recordedFetch, recordFetch } from '../integrations/fetch/record-fetch.ts';
import { duplicateTracer } from '../integrations/langchain/tracer.ts';
import { traceClient } from '../integrations/mcp/client.ts';
import { traceServer } from '../integrations/mcp/server.ts';
import { tracedOpenAILoop, tracedToolRunner } from '../integrations/tool-runners.ts';
import { type Fields, fieldsOf } from '../payload/fields.ts';
import { runtime } from '../platform/node.ts';
import { addStepSource } from '../run/context/current.ts';
import { addToRuntime } from '../run/encoded-run.ts';
import { entryOf } from './entry.ts';
import { http } from './http.ts';
import { warnOfMissedCalls } from './missed-calls.ts';
import { type Instrumentation, type ModulePatch, patchMissedBy, patchModule } from './module-hooks.ts';
import { agents } from './packages/agents.ts';
import { langchain } from './packages/langchain.ts';
import { isLeftToLangsmith, langsmithRun } from './packages/langsmith.ts';
import { mastra } from './packages/mastra.ts';
import { opentelemetry } from './packages/opentelemetry.ts';
import { propagation } from './propagation.ts';
import { answerFromFixture } from './replay.ts';
import { startOnce } from './start.ts';
import { isUnrecordedProgram } from './unrecorded-program.ts';

const AI_SDK: ModulePatch = {
  module: 'ai/dist/index',
  // Other packages, such as `cohere-ai`, have a name that ends in `ai`. Version 7 is also recorded in a bundle.
  sentWith: { header: 'user-agent', value: /(^| )ai\/[4-6]\./ },
  replaced: TRACED_MEMBERS,
  patch: wrapAISDK,
};

const CLAUDE_AGENT: ModulePatch = {
  module: '@anthropic-ai/claude-agent-sdk/sdk',
  replaced: TRACED_EXPORTS,
  patch: wrapClaudeAgentSDK,
};

const OPENAI_RUNNER: ModulePatch = {
  module: 'openai/lib/AbstractChatCompletionRunner',
  sentWith: { header: 'x-stainless-helper-method', value: /^runTools$/ },
  patch({ AbstractChatCompletionRunner: Runner }) {
    replaceMethod('runspan/register openai', prototypeOf(Runner), '_runTools', (method) => tracedOpenAILoop(method));
  },
};

const ANTHROPIC_RUNNER: ModulePatch = {
  module: '@anthropic-ai/sdk/resources/beta/messages/messages',
  sentWith: { header: 'x-stainless-helper', value: /ToolRunner/ },
  patch({ Messages }) {
    replaceMethod('runspan/register anthropic', prototypeOf(Messages), 'toolRunner', (method) =>
      tracedToolRunner(method),
    );
  },
};

/** The modules with the class `Client` or `Server` of MCP: the folders of the SDK 1, and the packages of the SDK 2. */
const MCP: readonly ModulePatch[] = [
  ...['sdk/dist/esm/client', 'sdk/dist/cjs/client', 'client/dist'].map((folder) => ({
    module: `@modelcontextprotocol/${folder}/index`,
    patch: ({ Client }: Fields) => traceClient('runspan/register mcp', prototypeOf(Client)),
  })),
  ...['sdk/dist/esm/server', 'sdk/dist/cjs/server', 'server/dist'].map((folder) => ({
    module: `@modelcontextprotocol/${folder}/index`,
    patch: ({ Server }: Fields) => traceServer('runspan/register mcp', prototypeOf(Server)),
  })),
];

const BEDROCK: ModulePatch = {
  module: '@aws-sdk/client-bedrock-runtime/dist-cjs/index',
  patch({ BedrockRuntimeClient: Client }) {
    replaceMethod('runspan/register bedrock', prototypeOf(Client), 'send', (send) =>
      tracedSend(send, (...call) => !isLeftToLangsmith(...call)),
    );
  },
};

const INSTRUMENTATIONS: readonly Instrumentation[] = [
  // Before `fetch`, so that a request of a model call gets the run of the call.
  propagation,
  {
    name: 'fetch',
    start() {
      recordFetch(isRecordedHere);
      patchModule({
        module: 'undici/index',
        // `propagation` has replaced the method, and `replaceMethod` replaces a method once.
        patch: (exports) => defineOwn(exports, 'fetch', recordedFetch(exports.fetch as Method)),
      });
      const replayed = env('RUNSPAN_REPLAY');
      if (replayed !== undefined) answerFromFixture(replayed);
      if (runtime.runtime === 'node') warnOfMissedCalls();
    },
  },
  langchain,
  {
    name: 'ai',
    start() {
      // Only the exports of `ai` are replaced, not the functions inside the package.
      patchModule(AI_SDK);
      recordChannel();
    },
  },
  { name: 'openai', start: () => patchModule(OPENAI_RUNNER) },
  { name: 'anthropic', start: () => patchModule(ANTHROPIC_RUNNER) },
  { name: 'bedrock', start: () => patchModule(BEDROCK) },
  { name: 'claude-agent', start: () => patchModule(CLAUDE_AGENT) },
  agents,
  { name: 'mcp', start: () => MCP.forEach(patchModule) },
  mastra,
  opentelemetry,
  http,
];

/**
 * Names of the instrumentations that this import has started. Empty if tracing is off or the program is never recorded,
 * such as a package manager.
 */
export const started: readonly string[] = isUnrecordedProgram(process.argv[1]) ? [] : startOnce(INSTRUMENTATIONS);
if (started.length > 0) {
  addStepSource(langsmithRun);
  // Deno asks for permission before it reads or writes a folder.
  if (runtime.runtime === 'node') {
    // The program cannot call `shutdown` before it crashes, or when its container is stopped.
    setDefaults({ durability: 'spill', signals: ['SIGTERM'] });
    // Outside `runspan dev`, arguments are not recorded, because they may contain any data.
    const argv = devEnv().program !== undefined || process.argv.length === 2 ? [...process.argv] : [];
    // The working directory may have been deleted.
    const folder = ignoreErrors(() => process.cwd());
    if (folder !== undefined) addToRuntime(() => ({ entry: entryOf(argv, process.execArgv, folder) }));
  }
}

/** Returns whether to record a model call. If the call comes from a bundled package, a warning is logged. */
function isRecordedHere(...[header, runType, model]: Parameters<CallFilter>): boolean {
  if (isLeftToLangsmith(header, runType, model)) return false;
  const [name] = /^(@[^/]+\/)?[^/]+/.exec(patchMissedBy(header)?.module ?? '') ?? [];
  // If LangChain's own tracer records the steps, no warning is logged.
  if (name === undefined || (name === '@langchain/core' && duplicateTracer() !== undefined)) return true;
  diagnostics.warnOnce(
    `bundled ${name}`,
    `a bundle contains the package ${name}, so only its model calls are recorded; exclude the package from the bundle, ` +
      `in Next.js with \`serverExternalPackages: ['${name}']\`.`,
  );
  return true;
}

function prototypeOf(type: unknown): object {
  return fieldsOf(fieldsOf(type).prototype);
}
