/** Stands for media that came as base64: a marker of how much there was, so that an answer is not all pixels. */
export function mediaMarker(kind: 'Image' | 'Audio', base64: string): string {
  return `[${kind}: ${base64Bytes(base64)} bytes]`;
}

/** How many bytes base64 text, padded or not, stands for. */
export function base64Bytes(base64: string): number {
  const padding = base64.endsWith('==') ? 2 : base64.endsWith('=') ? 1 : 0;
  return Math.floor(((base64.length - padding) * 3) / 4);
}
