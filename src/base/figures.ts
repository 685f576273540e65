// How the terminal and the page show numbers.

/** Formats a duration, for example `0.42 ms`, `12 ms`, `1.24 s`, `2 m 03 s` or `1 h 02 m`. */
export function durationFigure(ms: number): string {
  // The duration can be negative if the clock was set back during the run.
  if (ms <= 0) return '0 ms';
  if (ms < 1) return `${trimmed(ms, 2)} ms`;
  if (ms < 10) return `${trimmed(ms, 1)} ms`;
  if (ms < 999.5) return `${Math.round(ms)} ms`;
  if (ms < 59_995) return `${trimmed(ms / 1_000, ms < 9_995 ? 2 : 1)} s`;
  const seconds = Math.round(ms / 1_000);
  if (seconds < 3_600) return `${Math.floor(seconds / 60)} m ${pad(seconds % 60)} s`;
  return `${Math.floor(seconds / 3_600)} h ${pad(Math.floor((seconds % 3_600) / 60))} m`;
}

/** Formats a cost in dollars: below $1 with `digits` significant digits and up to `decimals` decimals, or `<$0.00001`. */
export function costFigure(value: number, decimals = 5, digits = 2): string {
  if (value === 0) return '$0';
  if (value < 0) return `-${costFigure(-value, decimals, digits)}`;
  if (value >= 1) return `$${value.toFixed(2)}`;
  const least = 10 ** -decimals;
  if (value < least) return `<$${least.toFixed(decimals)}`;
  const places = digits - 1 - Math.floor(Math.log10(value));
  return `$${Number(value.toPrecision(digits)).toFixed(Math.min(decimals, places))}`;
}

/** Formats a share, for example `0.5 %` or `42 %`. */
export function percent(part: number, whole: number): string {
  const share = whole === 0 ? 0 : (part / whole) * 100;
  return `${share === 0 || share >= 10 ? Math.round(share) : Number(share.toPrecision(2))} %`;
}

interface CachedUsage {
  readonly input_tokens?: number;
  readonly cached_tokens?: number;
}

/** Formats the share of the input tokens that were read from a cache. Returns undefined if none are reported. */
export function cachedShare(usage: CachedUsage | undefined): string | undefined {
  const { input_tokens = 0, cached_tokens } = usage ?? {};
  return cached_tokens === undefined ? undefined : percent(cached_tokens, input_tokens);
}

/** Formats a date and time with milliseconds, in the local time zone. */
export function exact(instant: string | number): string {
  const at = new Date(instant);
  if (Number.isNaN(at.getTime())) return `${instant}`;
  const time = `${pad(at.getHours())}:${pad(at.getMinutes())}:${pad(at.getSeconds())}`;
  return `${dateOf(at)} ${time}.${`${at.getMilliseconds()}`.padStart(3, '0')}`;
}

export function trimmed(value: number, digits: number): string {
  return `${Number(value.toFixed(digits))}`;
}

export function dateOf(at: Date): string {
  return `${at.getFullYear()}-${pad(at.getMonth() + 1)}-${pad(at.getDate())}`;
}

function pad(value: number): string {
  return `${value}`.padStart(2, '0');
}
