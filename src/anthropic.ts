import './runspan.ts';

export { type AnthropicLike, unwrapAnthropic, wrapAnthropic } from './integrations/anthropic.ts';
export type { WrapOptions } from './integrations/wrap-options.ts';
