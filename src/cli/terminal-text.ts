import { exact } from '../base/figures.ts';
import { visible } from '../base/text.ts';

const QUOTED_MAX = 80;

const clusters = new Intl.Segmenter();

const PLAIN = /^[\x20-\x7e]*$/;
/**
 * Matches characters that are two columns wide: emoji, and wide and fullwidth characters (Unicode Standard Annex 11).
 */
const WIDE =
  /\p{Emoji_Presentation}|\ufe0f|[\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\ua960-\ua97c\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff01-\uff60\uffe0-\uffe6\u{20000}-\u{3fffd}]/u;
const MARKS_ALONE = /^\p{M}+$/u;

export function inShellQuotes(text: string): string {
  return `"${visible(text.length > QUOTED_MAX ? `${text.slice(0, QUOTED_MAX)}…` : text)}"`;
}

export function visibleLines(text: string): string {
  return text.split(/\r?\n/).map(visible).join('\n');
}

/** Returns the width of a text in terminal columns. The width is approximate, because terminals differ. */
export function columnWidth(text: string): number {
  if (PLAIN.test(text)) return text.length;
  let columns = 0;
  for (const { segment } of clusters.segment(text)) columns += columnsOfCluster(segment);
  return columns;
}

/** Shortens a text to `columnsMax` columns, including the ellipsis. */
export function cutToColumns(text: string, columnsMax: number): string {
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

/** Formats a count with its noun, for example `1 run` or `2 runs`. */
export function counted(count: number, one: string, many: string = `${one}s`): string {
  return `${count} ${count === 1 ? one : many}`;
}

export function sizeText(bytes: number): string {
  if (bytes < 1_024) return counted(bytes, 'byte');
  const kib = bytes / 1_024;
  return kib < 1_024 ? `${kib.toFixed(1)} KiB` : `${(kib / 1_024).toFixed(1)} MiB`;
}

/** Formats a time in the local time zone, for example `2026-11-20 07:22:40`. */
export function timeText(isoTime: string): string {
  return exact(isoTime).slice(0, 19);
}
