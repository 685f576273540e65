/**
 * The names of the runs that ask-docs creates with each way of tracing. The last step is a model call or an extraction.
 */
export const WAYS = {
  traceable: ['ask-docs', 'read documents', 'build prompt'],
  '@traced': ['build index', 'retrieve'],
  OpenTelemetry: ['tokenize paragraphs', 'tokenize question'],
};

const RUN_TYPES_MIN = 3;

/**
 * Returns one line for each delivery fault in an ask-docs trace, by comparing the sending process's ledger with the
 * runs in the receiver. Returns nothing if every run arrived correctly and exactly once.
 */
export function faultsOf(ledger, received) {
  const names = new Set(received.map(({ name }) => name));
  const missing = Object.values(WAYS)
    .flat()
    .filter((name) => !names.has(name));
  const types = new Set(received.map(({ run_type }) => run_type));
  const traces = new Set(received.map(({ trace_id }) => trace_id));
  const open = received.filter(({ end_time }) => end_time === undefined);
  return [
    ...faultIf(ledger.sent !== ledger.created, `${ledger.created} runs were created and ${ledger.sent} sent`),
    ...faultIf(ledger.dropped > 0, `${ledger.dropped} runs were dropped`),
    ...faultIf(ledger.sent !== received.length, `${ledger.sent} runs were sent and ${received.length} received`),
    ...faultIf(open.length > 0, `${open.length} runs were received without their end`),
    ...faultIf(traces.size !== 1, `the runs are in ${traces.size} traces`),
    ...faultIf(ledger.requests.multipart === 0, 'nothing was sent over multipart'),
    ...faultIf(ledger.requests.simple > 0, `${ledger.requests.simple} requests fell back to simple ingestion`),
    ...faultIf(missing.length > 0, `missing: ${missing.join(', ')}`),
    ...faultIf(types.size < RUN_TYPES_MIN, `the runs are of ${types.size} types, not ${RUN_TYPES_MIN} or more`),
  ];
}

function faultIf(isFault, fault) {
  return isFault ? [fault] : [];
}
