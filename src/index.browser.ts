export { errorCodes, RunspanError } from './base/errors.ts';
export * from './instrument/off.browser.ts';
export { secretPatterns } from './payload/redaction/patterns.ts';
export { runIdFrom } from './run/ids.ts';
export { fromHeaders, toHeaders, withRun } from './run/propagation/headers.browser.ts';
