/** Traces calls to Vercel's AI SDK. @packageDocumentation */
import './runspan.ts';

export { unwrapModel, wrapModel } from './integrations/ai-sdk/model.ts';
export { unwrapAISDK, wrapAISDK } from './integrations/ai-sdk/sdk.ts';
