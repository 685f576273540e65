import { diagnostics } from '../base/diagnostics.ts';
import {
  type EnvironmentName,
  env,
  LANGSMITH_DEFAULT_ENDPOINT,
  langsmithEnv,
  usesLangsmithService,
} from '../base/env.ts';

/** Any of these turns LangChain's own tracer on. */
const SWITCHES: readonly EnvironmentName[] = [
  'LANGSMITH_TRACING',
  'LANGSMITH_TRACING_V2',
  'LANGCHAIN_TRACING_V2',
  'LANGCHAIN_TRACING',
];

/**
 * Whether LangChain's own tracer sends the same steps to the same place, as far as the environment says: under the same
 * ids each would spoil the other.
 */
export function hasTracerBeside(): boolean {
  const name = SWITCHES.find((variable) => env(variable) === 'true');
  if (name === undefined || !isSameEndpoint()) return false;
  diagnostics.warnOnce(
    'RunspanCallbackHandler twice',
    `RunspanCallbackHandler: ${name} is "true", so the tracer of LangChain itself sends the same steps to the ` +
      'same endpoint, and each is recorded twice. Set it to "false", or leave the handler out.',
  );
  return true;
}

function isSameEndpoint(): boolean {
  const ours = env('RUNSPAN_ENDPOINT');
  if (ours === undefined) return usesLangsmithService();
  const theirs = langsmithEnv('ENDPOINT') ?? LANGSMITH_DEFAULT_ENDPOINT;
  return withoutSlash(ours) === withoutSlash(theirs);
}

function withoutSlash(url: string): string {
  return url.endsWith('/') ? url.slice(0, -1) : url;
}
