/** Traces calls to the `@aws-sdk/client-bedrock-runtime` package. @packageDocumentation */
import './runspan.ts';

export { type BedrockLike, unwrapBedrock, wrapBedrock } from './integrations/bedrock/client.ts';
