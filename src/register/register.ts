import { TRACED_MEMBERS, wrapAISDK } from '../integrations/ai-sdk/sdk.ts';
import { recordFetch } from '../integrations/fetch/record-fetch.ts';
import { duplicateTracer } from '../integrations/langchain/tracer.ts';
import { agents } from './agents.ts';
import { isRecordedHere } from './call-filter.ts';
import { langchain } from './langchain.ts';
import { type Instrumentation, type ModulePatch, patchModule } from './module-hooks.ts';
import { opentelemetry } from './opentelemetry.ts';
import { isPackageManager } from './package-manager.ts';
import { startOnce } from './start.ts';
import { anthropic, openai } from './tool-runners.ts';

const AI_SDK: ModulePatch = {
  module: 'ai/dist/index',
  sentWith: { header: 'user-agent', value: /\bai\/\d/ },
  replaced: TRACED_MEMBERS,
  patch: wrapAISDK,
};

const INSTRUMENTATIONS: readonly Instrumentation[] = [
  { name: 'fetch', start: () => recordFetch(isRecordedHere) },
  langchain,
  // Functions inside the package are not replaced.
  { name: 'ai', start: () => patchModule(AI_SDK) },
  openai,
  anthropic,
  agents,
  opentelemetry,
];

/** The names of the instrumentations that this import has started. Empty if tracing is off, or in a package manager. */
export const started: readonly string[] = isPackageManager(process.argv[1])
  ? []
  : startOnce(INSTRUMENTATIONS, leaveToLangsmith);

/**
 * If the application loads langsmith's `traceable` or one of its wrappers, and these send runs to the same endpoint,
 * they record model calls and the steps of LangChain, and know the parents of these runs. Each would be recorded twice.
 */
function leaveToLangsmith(stops: readonly ((() => void) | undefined)[]): void {
  const patch = (): void => {
    if (duplicateTracer() !== undefined) for (const stop of stops) stop?.();
  };
  patchModule({ module: 'langsmith/dist/traceable', patch });
}
