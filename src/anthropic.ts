/** Traces calls to the `@anthropic-ai/sdk` package. @packageDocumentation */
import './runspan.ts';

export { type AnthropicLike, unwrapAnthropic, wrapAnthropic } from './integrations/anthropic/client.ts';
