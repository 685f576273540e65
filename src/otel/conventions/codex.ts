import { defined, type Fields, idTextOf } from '../../payload/fields.ts';
import { type Attributes, countValue, text } from './values.ts';
import type { Kind, Vocabulary } from './vocabulary.ts';

const TOKENS = 'codex.turn.token_usage';

/**
 * Mapping table for the spans of Codex 0.171.0 that the receiver keeps: a turn, its model calls and its tool calls.
 *
 * Only the span of a turn contains the model and token counts.
 */
export const codex: Vocabulary = {
  name: 'codex',
  namespaces: ['target'],
  matches: isCodexSpan,
  kindOf,
  metadata: [
    ['model', 'ls_model_name', text],
    ['conversation.id', 'thread_id', idTextOf],
    ['call_id', 'tool_call_id', text],
    // Not in the group `usage`, because the token counts of a `chain` run usually repeat those of nested runs.
    [`${TOKENS}.total_tokens`, 'usage_metadata', turnUsage],
  ],
  // The source location of the span, and token counts that `turnUsage` reads.
  ignored: [
    ...['target', 'busy_ns', 'idle_ns', 'thread.id', 'thread.name', 'turn_id'],
    ...['code.file.path', 'code.module.name', 'code.line.number'],
    ...['input', 'cached_input', 'cache_write_input', 'non_cached_input', 'output', 'reasoning_output'].map(
      (kind) => `${TOKENS}.${kind}_tokens`,
    ),
  ],
};

/** Returns whether the code of Codex created a span. Rust's `tracing` adds the name of the crate. */
export function isCodexSpan({ target }: Attributes): boolean {
  return text(target)?.startsWith('codex_') === true;
}

function kindOf(attributes: Attributes): Kind {
  if (attributes.call_id !== undefined) return { runType: 'tool', nameFrom: 'tool_name' };
  return { runType: attributes['codex.turn.phase'] === 'sampling' ? 'llm' : 'chain' };
}

function turnUsage(total: unknown, attributes: Attributes): Fields {
  const tokens = (kind: string): number | undefined => countValue(attributes[`${TOKENS}.${kind}_tokens`]);
  return defined({
    input_tokens: tokens('input'),
    output_tokens: tokens('output'),
    total_tokens: countValue(total),
    input_token_details: defined({ cache_read: tokens('cached_input'), cache_creation: tokens('cache_write_input') }),
    output_token_details: defined({ reasoning: tokens('reasoning_output') }),
  });
}
