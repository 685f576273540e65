import { Ledger } from '../../src/export/ledger.ts';
import { RequestLog, type RequestLogOptions } from '../../src/export/request-log.ts';

/** A log that counts in a ledger of its own. */
export function requestLog(options: Partial<RequestLogOptions> = {}): RequestLog {
  const monotonicMs = () => performance.now();
  return new RequestLog({ ledger: new Ledger(), endpoint: 'http://127.0.0.1:9', monotonicMs, ...options });
}
