/** Records the traces of Mastra. @packageDocumentation */
import './runspan.ts';

export { RunspanBridge, type RunspanBridgeOptions } from './integrations/mastra/bridge.ts';
export type { TracedClientOptions } from './integrations/sdk-client.ts';
export type { ThreadOptions } from './run/run-options.ts';
export type { FlushLimit, FlushResult, RunSink } from './run/sink.ts';
