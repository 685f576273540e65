/** Why what the sink has counted is not what was created; undefined when exactly that has arrived, each run once. */
export function complaintOf({ malformed, posted, complete, startRecords, endRecords }, runs) {
  if (malformed > 0) return `${malformed} requests could not be read`;
  if (complete !== runs || posted !== runs) return `${runs} runs created, ${complete} arrived whole`;
  if (startRecords !== runs) return `${startRecords} starts arrived of ${runs} runs`;
  if (endRecords !== runs) return `${endRecords} ends arrived of ${runs} runs`;
  return undefined;
}

/** So much of the payloads has to have arrived: some wire formats have other escapes, and what is cut out is more than that. */
const PAYLOAD_SHARE_MIN = 0.9;

/**
 * Why a row has sent less than it was given, though all its runs have arrived; undefined where it has not, and where there is
 * nothing to compare it with: the limit sends all that there is to send. A driver of fewer turns has other payloads.
 */
export function shortfallOf({ runs, bodyBytesPerRun }, limit) {
  if (limit === undefined || limit.complaint !== undefined || runs !== limit.runs) return undefined;
  const share = bodyBytesPerRun / limit.payloadBytesPerRun;
  if (!(share < PAYLOAD_SHARE_MIN)) return undefined;
  return `${Math.round(bodyBytesPerRun)} bytes of a run arrived, where its payloads have ${Math.round(limit.payloadBytesPerRun)}`;
}
