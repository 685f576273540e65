/**
 * Returns the difference between the created runs and the sink's counts. Returns undefined if each run arrived exactly
 * once.
 */
export function complaintOf({ malformed, posted, complete, startRecords, endRecords }, runs) {
  if (malformed > 0) return `${malformed} requests could not be read`;
  if (complete !== runs || posted !== runs) return `${runs} runs created, ${complete} arrived whole`;
  if (startRecords !== runs) return `${startRecords} starts arrived of ${runs} runs`;
  if (endRecords !== runs) return `${endRecords} ends arrived of ${runs} runs`;
  return undefined;
}

/**
 * Minimum share of the payload bytes that must arrive. Wire formats differ in their escapes, but a truncated payload
 * loses more.
 */
const PAYLOAD_SHARE_MIN = 0.9;

/**
 * Describes a driver that sent all runs but truncated their payloads, compared with the limit, which sends them whole.
 * Returns undefined if nothing was truncated, or if the limit did other turns, whose payloads differ.
 */
export function shortfallOf({ runs, bodyBytesPerRun }, limit) {
  if (limit === undefined || limit.complaint !== undefined || runs !== limit.runs) return undefined;
  const share = bodyBytesPerRun / limit.payloadBytesPerRun;
  if (!(share < PAYLOAD_SHARE_MIN)) return undefined;
  return `${Math.round(bodyBytesPerRun)} bytes of a run arrived, where its payloads have ${Math.round(limit.payloadBytesPerRun)}`;
}
