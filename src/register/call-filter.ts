import { diagnostics } from '../base/diagnostics.ts';
import { duplicateTracer } from '../integrations/langchain/tracer.ts';
import { isHooked, isLoaded } from './module-hooks.ts';

type Header = (name: string) => string | undefined;

const LANGCHAIN = '@langchain/core/dist/callbacks/manager';

/** The global property in which langsmith and LangGraph store their context. */
const LANGSMITH_STORAGE = Symbol.for('ls:tracing_async_local_storage');

/** Patched modules, and the request header that identifies the model calls of their package. */
const PACKAGES = [
  { name: 'ai', module: 'ai/dist/index', header: 'user-agent', value: /\bai\/\d/ },
  { name: '@langchain/core', module: LANGCHAIN, header: 'user-agent', value: /^langchainjs-/ },
  {
    name: 'openai',
    module: 'openai/lib/AbstractChatCompletionRunner',
    header: 'x-stainless-helper-method',
    value: /^runTools$/,
  },
  {
    name: '@anthropic-ai/sdk',
    module: '@anthropic-ai/sdk/resources/beta/messages/messages',
    header: 'x-stainless-helper',
    value: /ToolRunner/,
  },
];

/** Whether to record a model call. Logs a line if the call comes from a package that is part of a bundle. */
export function isRecordedHere(header: Header): boolean {
  if (isLeftToLangsmith(header)) return false;
  const found = PACKAGES.find(({ module, header: name, value }) => {
    return isHooked(module) && !isLoaded(module) && value.test(header(name) ?? '');
  });
  if (found !== undefined) {
    diagnostics.warnOnce(
      `bundled ${found.name}`,
      `a bundle contains the package ${found.name}, so only its model calls are recorded; exclude it from the bundle, ` +
        `in Next.js with \`serverExternalPackages: ['${found.name}']\`.`,
    );
  }
  return true;
}

/**
 * Whether langsmith's own tracer records the call, because LangChain could not be patched: it is part of a bundle, or an
 * ES module on Node before 22.15.
 */
function isLeftToLangsmith(header: Header): boolean {
  if (isLoaded(LANGCHAIN) || duplicateTracer() === undefined) return false;
  return LANGSMITH_STORAGE in globalThis || header('user-agent')?.startsWith('langchainjs-') === true;
}
