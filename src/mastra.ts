/** Records the traces of Mastra. @packageDocumentation */
import './runspan.ts';

export { RunspanBridge } from './integrations/mastra/bridge.ts';
