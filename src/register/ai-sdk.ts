import { TRACED_MEMBERS, wrapAISDK } from '../integrations/ai-sdk/sdk.ts';
import { type Instrumentation, patchModule } from './module-hooks.ts';

/** Replaces the functions of the AI SDK, as `wrapAISDK` does. Functions inside the package are not replaced. */
export const aiSdk: Instrumentation = {
  name: 'ai',
  start: () => patchModule({ module: 'ai/dist/index', replaced: TRACED_MEMBERS, patch: wrapAISDK }),
};
