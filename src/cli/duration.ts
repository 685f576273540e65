/** A duration as people read it, to three digits or so: `0.4 ms`, `42 ms`, `1.25 s`, `2 min 5 s`, `1 h 3 min`. */
export function durationText(us: number): string {
  const ms = Math.max(0, us) / 1_000;
  if (ms < 9.95) return `${ms.toFixed(1)} ms`;
  if (ms < 999.5) return `${ms.toFixed(0)} ms`;
  if (ms < 59_995) return `${(ms / 1_000).toFixed(2)} s`;
  const seconds = Math.round(ms / 1_000);
  if (seconds < 3_600) return `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
  const minutes = Math.round(seconds / 60);
  return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}
