/** Traces calls to the `@anthropic-ai/sdk` package. @packageDocumentation */
import './runspan.ts';

export { type AnthropicLike, unwrapAnthropic, wrapAnthropic } from './integrations/anthropic/client.ts';
export type { TracedClientOptions } from './integrations/sdk-client.ts';
export type { ThreadOptions } from './run/run-options.ts';
export type { FlushLimit, FlushResult, RunSink } from './run/sink.ts';
