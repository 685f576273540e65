/** Traces calls to the `openai` package. @packageDocumentation */
import './runspan.ts';

export { type OpenAILike, unwrapOpenAI, wrapOpenAI } from './integrations/openai/client.ts';
