/** Plain English in ASCII with line breaks and quotation marks, long enough to cut differing pieces from. */
const PROSE = [
  'A span is opened when work begins and closed when it ends; what happens in between belongs to it.',
  'The collector keeps "slow" requests for a week and all others for a day, unless a rule says otherwise.',
  'When the queue is full the oldest batch is written to disk, and a line in the log tells how many were kept.',
  'Readers who come from other systems will miss the global registry: there is none, and there need not be.',
  'Set the limit low at first. Raise it once the dashboards show that memory stays flat through the night.',
  'Every retry waits twice as long as the one before, up to half a minute, with some jitter on top of it.',
  'The "default" project receives whatever names no other; it can be renamed but it cannot be removed.',
  'Clocks of two machines never agree: sort by the order of events where you can and by time where you must.',
]
  .join('\n')
  .repeat(4);

/** A piece of so many characters, another one for another seed. */
export function piece(seed, chars) {
  const start = seed % (PROSE.length - chars);
  return PROSE.slice(start, start + chars);
}
