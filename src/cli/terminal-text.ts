import { visible } from '../base/text.ts';

/** Characters of a text from outside that a message shows. */
const QUOTED_MAX = 80;

const clusters = new Intl.Segmenter();

const PLAIN = /^[\x20-\x7e]*$/;
/** East Asian wide and fullwidth characters (Unicode Standard Annex 11) and emoji: two columns each. */
const WIDE =
  /\p{Emoji_Presentation}|\ufe0f|[\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\ua960-\ua97c\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff01-\uff60\uffe0-\uffe6\u{20000}-\u{3fffd}]/u;
const MARKS_ALONE = /^\p{M}+$/u;

/** As messages show it. */
export function quoted(text: string): string {
  return `"${visible(text.length > QUOTED_MAX ? `${text.slice(0, QUOTED_MAX)}…` : text)}"`;
}

/** How many columns of a terminal the text takes, as far as that can be known without asking it. */
export function columnsOf(text: string): number {
  if (PLAIN.test(text)) return text.length;
  let columns = 0;
  for (const { segment } of clusters.segment(text)) columns += columnsOfCluster(segment);
  return columns;
}

/** The text if it fits, else its beginning and an ellipsis, together at most so many columns. */
export function cut(text: string, columnsMax: number): string {
  if (text.length <= columnsMax && PLAIN.test(text)) return text;
  let kept = '';
  let columns = 0;
  for (const { segment, index } of clusters.segment(text)) {
    columns += columnsOfCluster(segment);
    const isLast = index + segment.length === text.length;
    if (columns > (isLast ? columnsMax : columnsMax - 1)) return `${kept}…`;
    kept += segment;
  }
  return kept;
}

function columnsOfCluster(cluster: string): number {
  if (MARKS_ALONE.test(cluster)) return 0;
  return WIDE.test(cluster) ? 2 : 1;
}

/** `1 run`, `2 runs`. */
export function counted(count: number, one: string, many: string = `${one}s`): string {
  return `${count} ${count === 1 ? one : many}`;
}
