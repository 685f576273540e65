// What the services have in common. Some model names cause failures:
//
//   fail-401 (or another status)       an error for every request
//   fail-500-once                      an error, and an answer to the retry
//   fail-mid-stream                    an error event after a few chunks
//   malformed                          invalid JSON, or an invalid event after a few chunks
//   drop-mid-stream, hang-mid-stream   the connection drops or hangs after a few chunks
//   hang                               no answer at all

/**
 * Answers a request (see `server.js`): `answer` creates a whole answer from the body, and `events` a streamed one. A
 * service is `{ errorOf(status), errorEvent, malformedEvent, eventsBeforeFailure }`.
 */
export function served({ body, headers }, service, answer, events) {
  const model = String(body.model);
  const [, status, once] = /^fail-(\d{3})(-once)?$/.exec(model) ?? [];
  if (status !== undefined && (once === undefined || headers['x-stainless-retry-count'] === '0')) {
    // Otherwise the SDKs wait half a second before they retry.
    return { status: Number(status), headers: { 'retry-after-ms': '1' }, json: service.errorOf(Number(status)) };
  }
  if (model === 'hang') return { ending: 'hang' };
  if (String(body.stream) !== 'true') return model === 'malformed' ? { text: '{"id": [' } : { json: answer(body) };
  const all = events(body);
  if (!/^(fail-mid-stream|malformed|drop-mid-stream|hang-mid-stream)$/.test(model)) return { events: all };
  const first = all.slice(0, service.eventsBeforeFailure);
  if (model === 'fail-mid-stream') return { events: [...first, service.errorEvent] };
  if (model === 'malformed') return { events: [...first, service.malformedEvent] };
  return { events: first, ending: model.split('-')[0] };
}
