import { diagnostics } from '../base/diagnostics.ts';
import { TRACED_MEMBERS, wrapAISDK } from '../integrations/ai-sdk/sdk.ts';
import { type CallFilter, recordFetch } from '../integrations/fetch/record-fetch.ts';
import { duplicateTracer } from '../integrations/langchain/tracer.ts';
import { addStepSource } from '../run/context.ts';
import { agents } from './agents.ts';
import { langchain } from './langchain.ts';
import { isLeftToLangsmith, langsmithRun } from './langsmith.ts';
import { type Instrumentation, type ModulePatch, patchMissedBy, patchModule } from './module-hooks.ts';
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
export const started: readonly string[] = isPackageManager(process.argv[1]) ? [] : startOnce(INSTRUMENTATIONS);
if (started.length > 0) addStepSource(langsmithRun);

/** Whether to record a model call. Logs a line if the call comes from a package that is part of a bundle. */
function isRecordedHere(...[header, runType, call]: Parameters<CallFilter>): boolean {
  if (isLeftToLangsmith(header, runType, call)) return false;
  const [name] = /^(@[^/]+\/)?[^/]+/.exec(patchMissedBy(header)?.module ?? '') ?? [];
  // LangChain's own tracer then records the steps.
  if (name === undefined || (name === '@langchain/core' && duplicateTracer() !== undefined)) return true;
  diagnostics.warnOnce(
    `bundled ${name}`,
    `a bundle contains the package ${name}, so only its model calls are recorded; exclude it from the bundle, ` +
      `in Next.js with \`serverExternalPackages: ['${name}']\`.`,
  );
  return true;
}
