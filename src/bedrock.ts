/** Traces calls to the `@aws-sdk/client-bedrock-runtime` package. @packageDocumentation */
import './runspan.ts';

export { type BedrockLike, unwrapBedrock, wrapBedrock } from './integrations/bedrock/client.ts';
export type { TracedClientOptions } from './integrations/sdk-client.ts';
export type { ThreadOptions } from './run/run-options.ts';
export type { FlushLimit, FlushResult, RunSink } from './run/sink.ts';
