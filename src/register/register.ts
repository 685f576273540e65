import { diagnostics, LEVELS } from '../base/diagnostics.ts';
import { env, parseFlag } from '../base/env.ts';
import { guard } from '../base/guard.ts';
import { TRACED_MEMBERS, wrapAISDK } from '../integrations/ai-sdk/sdk.ts';
import { recordFetch } from '../integrations/fetch/record-fetch.ts';
import { duplicateTracer } from '../integrations/langchain/tracer.ts';
import { agents } from './agents.ts';
import { isRecordedHere } from './call-filter.ts';
import { langchain } from './langchain.ts';
import { type Instrumentation, type ModulePatch, patchModule } from './module-hooks.ts';
import { opentelemetry } from './opentelemetry.ts';
import { isPackageManager } from './package-manager.ts';
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

const STARTED = Symbol.for('runspan.register.started');

/** The names of the instrumentations that this import has started. Empty if tracing is off. */
export const started: readonly string[] = startOnce();

/**
 * Does nothing in a package manager, or if another copy of the package has already started, for example the copy of
 * `runspan dev`.
 */
function startOnce(): string[] {
  const holder = globalThis as { [STARTED]?: true };
  if (holder[STARTED] || parseFlag(env('RUNSPAN_TRACING')) === false) return [];
  if (isPackageManager(process.argv[1])) return [];
  holder[STARTED] = true;
  // Otherwise the variable is read at the first run.
  const level = LEVELS.find((known) => known === env('RUNSPAN_LOG'));
  if (level !== undefined && !diagnostics.isLogSet) diagnostics.setLog(level);
  const chosen = selected(env('RUNSPAN_INSTRUMENTATIONS'));
  const stops = chosen.map(({ name, start }) => guard(`runspan/register ${name}`, start));
  leaveToLangsmith(stops);
  return chosen.map(({ name }) => name);
}

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

/** Selects the named instrumentations, or all if no name is given. A name after `-` is left out. */
function selected(setting: string | undefined): readonly Instrumentation[] {
  const names = setting?.split(',').flatMap((name) => name.trim() || []) ?? [];
  const known = INSTRUMENTATIONS.map(({ name }) => name);
  const unknown = names.filter((name) => !known.includes(name.replace(/^-/, '')));
  if (unknown.length > 0) {
    diagnostics.warn(
      `RUNSPAN_INSTRUMENTATIONS: unknown name ${unknown.join(', ')}; left out. Known names: ${known.join(', ')}.`,
    );
  }
  const isLimited = names.some((name) => !name.startsWith('-'));
  return INSTRUMENTATIONS.filter(({ name }) => (!isLimited || names.includes(name)) && !names.includes(`-${name}`));
}
