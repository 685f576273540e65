/** The difference between the created runs and the sink's counts; undefined if each run arrived exactly once. */
export function complaintOf({ malformed, posted, complete, startRecords, endRecords }, runs) {
  if (malformed > 0) return `${malformed} requests could not be read`;
  if (complete !== runs || posted !== runs) return `${runs} runs created, ${complete} arrived whole`;
  if (startRecords !== runs) return `${startRecords} starts arrived of ${runs} runs`;
  if (endRecords !== runs) return `${endRecords} ends arrived of ${runs} runs`;
  return undefined;
}

/** The share of the payload bytes that must arrive. Wire formats differ in their escapes; a truncated payload loses more. */
const PAYLOAD_SHARE_MIN = 0.9;

/**
 * Describes a driver that sent all runs but truncated their payloads, compared with the limit, which sends them whole. Undefined if it
 * did not, or if the limit did other turns: these have other payloads.
 */
export function shortfallOf({ runs, bodyBytesPerRun }, limit) {
  if (limit === undefined || limit.complaint !== undefined || runs !== limit.runs) return undefined;
  const share = bodyBytesPerRun / limit.payloadBytesPerRun;
  if (!(share < PAYLOAD_SHARE_MIN)) return undefined;
  return `${Math.round(bodyBytesPerRun)} bytes of a run arrived, where its payloads have ${Math.round(limit.payloadBytesPerRun)}`;
}
