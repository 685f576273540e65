/** Traces calls to the Claude Agent SDK. @packageDocumentation */
import './runspan.ts';

export { unwrapClaudeAgentSDK, wrapClaudeAgentSDK } from './integrations/claude-agent/sdk.ts';
