import './runspan.ts';

export type { TracedClientOptions } from './integrations/client-options.ts';
export { type OpenAILike, unwrapOpenAI, wrapOpenAI } from './integrations/openai.ts';
export type { FlushLimit, FlushResult, RunSink } from './run/sink.ts';
