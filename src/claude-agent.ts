/** Traces calls to the Claude Agent SDK. @packageDocumentation */
import './runspan.ts';

export { wrapClaudeAgentSDK } from './integrations/claude-agent/sdk.ts';
