export { errorCodes, RunspanError } from './base/errors.ts';
export {
  configure,
  createExporter,
  currentRun,
  flush,
  redact,
  shutdown,
  startRun,
  stats,
  traceable,
  traced,
  traceMethods,
  withExporter,
  withFlush,
} from './instrument/off.browser.ts';
export { secretPatterns } from './payload/secret-patterns.ts';
export { fromHeaders, toHeaders, withRun } from './run/headers.browser.ts';
export { runIdFrom } from './run/ids.ts';
