import { idTextOf } from '../../payload/fields.ts';
import { type Attributes, json, jsonFields, microseconds, type Read, text } from './values.ts';
import { FIRST_TOKEN, type Kind, NOTHING_NEW, type Vocabulary, WHOLE } from './vocabulary.ts';

/** Replaces content in the spans and log records of Claude Code unless the user has turned content on. */
export const CLAUDE_REDACTED = '<REDACTED>';

const TYPE = 'span.type';

/**
 * Mapping table for the spans of Claude Code 2.1.332: https://code.claude.com/docs/en/monitoring-usage
 *
 * GenAI attributes beside these contain the model, the token counts and the name of a tool. Only the detailed beta
 * tracing sends `new_context`, `tool_input` and `response.model_output`.
 */
export const claudeCode: Vocabulary = {
  name: 'claude_code',
  namespaces: ['span'],
  matches: (attributes) => attributes[TYPE] !== undefined && attributes['anthropic.provider'] !== undefined,
  kindOf,
  inputs: [
    ['user_prompt', 'messages', messageFrom('user')],
    ['new_context', 'messages', ofType('llm_request', messageFrom('user')), 'repeats'],
    ['tool_input', WHOLE, labelled],
    ['full_command', 'command', text, 'repeats'],
    ['file_path', 'file_path', text, 'repeats'],
    ['subagent_type', 'subagent_type', text, 'repeats'],
  ],
  outputs: [
    ['response.model_output', 'messages', messageFrom('assistant')],
    ['new_context', WHOLE, ofType('tool', labelled)],
    // From the event `tool.output`.
    ['gen_ai.tool.call.result', WHOLE, json, 'repeats'],
  ],
  metadata: [
    // In spans of a subagent, `gen_ai.conversation.id` is the id of the subagent.
    ['session.id', 'thread_id', idTextOf],
  ],
  times: [['ttft_ms', FIRST_TOKEN, microseconds(1_000)]],
  // Most of these repeat GenAI attributes. `bash_argv0` is sent even if the command is not.
  ignored: [
    ...[TYPE, 'model', 'request_id', 'tool_use_id', 'tool_name', 'tool_name_safe', 'bash_argv0'],
    ...['input_tokens', 'output_tokens', 'cache_read_tokens', 'cache_creation_tokens', 'stop_reason'],
    ...['duration_ms', 'interaction.duration_ms'],
  ],
};

/** The execution of a tool is a part of the run of the tool. */
function kindOf(attributes: Attributes): Kind {
  const rename = { from: 'claude_code.interaction', to: 'Claude Code' };
  return attributes[TYPE] === 'tool.execution' ? { runType: 'chain', rename } : { rename };
}

function messageFrom(role: string): Read {
  return (value) => {
    const content = text(value);
    return content === undefined || content === CLAUDE_REDACTED ? NOTHING_NEW : [{ role, content }];
  };
}

function ofType(type: string, read: Read): Read {
  return (value, attributes) => (attributes[TYPE] === type ? read(value, attributes) : undefined);
}

/** Parses JSON after a first line such as `[TOOL INPUT: Bash]`. Returns the text unchanged if it is not an object. */
function labelled(value: unknown): unknown {
  const given = text(value)?.replace(/^\[[^\n]*\]\n/, '') ?? '';
  return jsonFields(given) ?? given;
}
