/** Why what the sink has counted is not what was created; undefined when exactly that has arrived, each run once. */
export function complaintOf({ malformed, posted, complete, startRecords, endRecords }, runs) {
  if (malformed > 0) return `${malformed} requests could not be read`;
  if (complete !== runs || posted !== runs) return `${runs} runs created, ${complete} arrived whole`;
  if (startRecords !== runs) return `${startRecords} starts arrived of ${runs} runs`;
  if (endRecords !== runs) return `${endRecords} ends arrived of ${runs} runs`;
  return undefined;
}
