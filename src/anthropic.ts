import './runspan.ts';

export { type AnthropicLike, unwrapAnthropic, wrapAnthropic } from './integrations/anthropic.ts';
export type { TracedClientOptions } from './integrations/client-options.ts';
