import { diagnostics } from '../base/diagnostics.ts';
import { env } from '../base/env.ts';

/** Whether LangChain's own tracer sends the same steps to the same place: under the same ids each would spoil the other. */
export function hasTracerBeside(): boolean {
  const endpoint = env('RUNSPAN_ENDPOINT');
  const isSame = endpoint === undefined || endpoint === env('LANGSMITH_ENDPOINT');
  if (env('LANGSMITH_TRACING') !== 'true' || !isSame) return false;
  diagnostics.warnOnce(
    'RunspanCallbackHandler twice',
    'RunspanCallbackHandler: LANGSMITH_TRACING is "true", so the tracer of LangChain itself sends the same steps to the ' +
      'same endpoint, and each is recorded twice. Set it to "false", or leave the handler out.',
  );
  return true;
}
