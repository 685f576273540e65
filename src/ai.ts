import './runspan.ts';

export { unwrapModel, wrapModel } from './integrations/ai-model.ts';
export { wrapAISDK } from './integrations/ai-sdk.ts';
