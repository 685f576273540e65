import { diagnostics } from '../base/diagnostics.ts';
import { duplicateTracer } from '../integrations/langchain/tracer.ts';
import { LANGCHAIN } from './langchain.ts';
import { type Header, isLoaded, patchMissedBy } from './module-hooks.ts';

/** The global property in which langsmith and LangGraph store their context. */
const LANGSMITH_STORAGE = Symbol.for('ls:tracing_async_local_storage');

/** Whether to record a model call. Logs a line if the call comes from a package that is part of a bundle. */
export function isRecordedHere(header: Header): boolean {
  if (isLeftToLangsmith(header)) return false;
  const [name] = /^(@[^/]+\/)?[^/]+/.exec(patchMissedBy(header)?.module ?? '') ?? [];
  if (name !== undefined) {
    diagnostics.warnOnce(
      `bundled ${name}`,
      `a bundle contains the package ${name}, so only its model calls are recorded; exclude it from the bundle, ` +
        `in Next.js with \`serverExternalPackages: ['${name}']\`.`,
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
