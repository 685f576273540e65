import type { SpanLike } from './span-like.ts';

/** The functions of Vercel's AI SDK that a model answers, and their calls of it. */
const ANSWERED = /^ai\.(?:generate|stream)(?:Text|Object)(?:\.do(?:Generate|Stream))?$/;

/** The name of the scope of version 7, and the operations for which it tells why the model has finished. */
const SCOPE_OF_7 = 'gen_ai';
const ANSWERED_OF_7: ReadonlySet<unknown> = new Set(['chat', 'invoke_agent']);

/**
 * Whether a span is a call of the AI SDK that its caller has stopped. The SDK ends these without a status, and tells no
 * reason why the model has finished.
 */
export function isCancelledCall({ attributes, status, instrumentationScope: scope }: SpanLike): boolean {
  if (status.code !== 0) return false;
  const operation = attributes['ai.operationId'];
  if (typeof operation === 'string') {
    return ANSWERED.test(operation) && attributes['ai.response.finishReason'] === undefined;
  }
  const isOf7 = scope?.name === SCOPE_OF_7 && ANSWERED_OF_7.has(attributes['gen_ai.operation.name']);
  return isOf7 && attributes['gen_ai.response.finish_reasons'] === undefined;
}
