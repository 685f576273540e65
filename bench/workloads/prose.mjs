/**
 * ASCII text with line breaks and quotation marks, generated from a fixed seed. It compresses about as well as real
 * text.
 */
const SENTENCES = 2_000;

const WORDS = (
  'queue ledger service memory tenant cursor shard report answer header window credit bundle ticket parcel region ' +
  'budget filter schema anchor vendor signal branch margin record policy socket thread engine volume sensor gateway ' +
  'invoice quorum archive session cluster invariant latency replica segment mailbox manifest checkpoint clock reader ' +
  'journal batch limit retry project machine index tool agent span collector request dashboard half minute jitter order'
).split(' ');
const LINKS = (
  'of its|and the|or another|with every|that names the|which waits for the|before any|beside one|is sorted by the|' +
  'belongs to the|differs from that|depends on each|is kept for a|cannot remove the|will outlive this|unless the|' +
  'was told by a|under the|between one|raises the'
).split('|');

const PROSE = Array.from({ length: SENTENCES }, sentences(1)).join('\n');

/** Returns a slice with `chars` characters. Other seeds return distant slices. */
export function piece(seed, chars) {
  const start = (seed * 7_919) % (PROSE.length - chars);
  return PROSE.slice(start, start + chars);
}

function sentences(seed) {
  let state = seed;
  const random = (below) => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0;
    return (state >>> 8) % below;
  };
  const word = () => WORDS[random(WORDS.length)];
  return () => {
    let text = `The "${word()}" ${word()}`;
    for (let left = 4 + random(4); left > 0; left--) text += ` ${LINKS[random(LINKS.length)]} ${word()}`;
    return `${text}, ${random(1_000)} times.`;
  };
}
