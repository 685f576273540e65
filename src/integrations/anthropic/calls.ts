import { type Fields, fieldsOf, listOf, sumOfCounts, textOf } from '../../payload/fields.ts';
import { type CallReader, describeRequest, objectReader, type RequestFields } from '../call-reader.ts';
import { withDataUris } from '../media.ts';
import { readUsage, type UsagePaths } from '../usage.ts';
import { messageFold } from './message-fold.ts';

const message: RequestFields = { modelType: 'chat', inputKeys: ['messages', 'system'], inputs: messageInputs };

/** Reads requests to Anthropic's Messages API. Other Anthropic requests are not recorded. */
export const messageCall: CallReader = {
  name: 'anthropic.messages',
  runType: 'llm',
  isWhole: true,
  describe: (body, provider) => describeRequest(body, provider, message),
  ...objectReader(
    ['content'],
    (answer) => {
      const usage = readUsage(withCompactions(fieldsOf(answer.usage)), USAGE, { excludesCached: true });
      return { outputs: answer, model: textOf(answer.model), responseId: textOf(answer.id), usage };
    },
    messageFold,
  ),
};

function messageInputs({ messages, system }: Fields): Fields {
  const given = withDataUris(messages);
  return { messages: system === undefined ? given : [{ role: 'system', content: system }, ...listOf(given)] };
}

const USAGE: UsagePaths = {
  input_tokens: ['input_tokens'],
  output_tokens: ['output_tokens'],
  zeroIfMissing: ['input_tokens', 'output_tokens'],
  input_token_details: {
    cache_read: ['cache_read_input_tokens'],
    cache_creation: ['cache_creation_input_tokens'],
    ephemeral_5m_input_tokens: ['cache_creation.ephemeral_5m_input_tokens'],
    ephemeral_1hr_input_tokens: ['cache_creation.ephemeral_1h_input_tokens'],
  },
  output_token_details: { reasoning: ['output_tokens_details.thinking_tokens'] },
};

/**
 * Adds the tokens of compactions, which the message's token counts exclude. Tokens of other `iterations` are already
 * included or belong to another model with other prices.
 */
function withCompactions(usage: Fields): Fields {
  const compactions = listOf(usage.iterations).map(fieldsOf);
  return compactions.filter(({ type }) => type === 'compaction').reduce(sumOfCounts, usage);
}
