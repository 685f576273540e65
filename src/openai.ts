/** Traces calls to the `openai` package. @packageDocumentation */
import './runspan.ts';

export { type OpenAILike, unwrapOpenAI, wrapOpenAI } from './integrations/openai/client.ts';
export type { TracedClientOptions } from './integrations/sdk-client.ts';
export type { ThreadOptions } from './run/run-options.ts';
export type { FlushLimit, FlushResult, RunSink } from './run/sink.ts';
