import { diagnostics } from '../../base/diagnostics.ts';
import { shared } from '../../base/shared.ts';
import {
  type EnvironmentName,
  env,
  LANGSMITH_DEFAULT_URL,
  LANGSMITH_TRACING,
  langsmithEnv,
  usesLangsmithService,
} from '../../config/environment.ts';

/** Whether LangChain is patched, which removes its own tracer from calls that would be recorded twice. */
export const tracer: { isRemoved: boolean } = shared('langchainTracer', () => ({ isRemoved: false }));

/** Clients of `runspan/langsmith` without options. If a tracer has one, the handler records its steps to the same sink. */
export const plainClients: WeakSet<object> = shared('langsmithClients', () => new WeakSet());

/** Returns the environment variable that makes LangChain's own tracer send runs to the same endpoint, if any. */
export function duplicateTracer(): EnvironmentName | undefined {
  const name = LANGSMITH_TRACING.find((variable) => env(variable) === 'true');
  return name !== undefined && hasSameEndpoint() ? name : undefined;
}

/**
 * Logs a warning and returns true if LangChain's own tracer also records each step. With the same id, both runs of a
 * step would overwrite each other.
 */
export function warnIfTracedTwice(): boolean {
  const name = tracer.isRemoved ? undefined : duplicateTracer();
  if (name === undefined) return false;
  diagnostics.warnOnce(
    'RunspanCallbackHandler twice',
    `RunspanCallbackHandler: ${name} is "true", so LangChain's own tracer sends the same steps to the same endpoint, ` +
      `and each step is recorded twice. Set ${name} to "false", or remove the handler.`,
  );
  return true;
}

function hasSameEndpoint(): boolean {
  const ours = env('RUNSPAN_ENDPOINT');
  if (ours === undefined) return usesLangsmithService();
  const theirs = langsmithEnv('ENDPOINT') ?? LANGSMITH_DEFAULT_URL;
  return withoutSlash(ours) === withoutSlash(theirs);
}

function withoutSlash(url: string): string {
  return url.endsWith('/') ? url.slice(0, -1) : url;
}
