import './runspan.ts';

export { type AnthropicLike, unwrapAnthropic, wrapAnthropic } from './integrations/anthropic.ts';
export type { TracedClientOptions } from './integrations/client-options.ts';
export type { FlushLimit, FlushResult, RunSink } from './run/sink.ts';
