import { useEffect, useState } from 'preact/hooks';
import type { Usage } from '../../receiver/domain/run-view.ts';
import { saved } from '../data/trace-file.ts';

/** Converts an ISO 8601 timestamp to milliseconds since 1970, with microseconds as a fraction. */
export function millisecondsAt(iso: string): number {
  const whole = Date.parse(iso);
  // For speed, the receiver's format is parsed without a regular expression. A trace can contain hundreds of thousands
  // of timestamps.
  if (iso.length !== 27 || iso[19] !== '.') return whole;
  return whole + Number(iso.slice(23, 26)) / 1_000;
}

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

/** Formats a count, for example `1,234`, `123k` or `1.2M`. */
export function countFigure(value: number): string {
  if (value < 100_000) return Math.round(value).toLocaleString('en');
  if (value < 999_500) return `${Math.round(value / 1_000)}k`;
  return `${trimmed(value / 1_000_000, 1)}M`;
}

/** Formats a cost in dollars: below $1 with two significant digits and up to `decimals` decimals, or `<$0.00001`. */
export function costFigure(value: number, decimals = 5): string {
  if (value === 0) return '$0';
  if (value < 0) return `-${costFigure(-value, decimals)}`;
  if (value >= 1) return `$${value.toFixed(2)}`;
  const least = 10 ** -decimals;
  if (value < least) return `<$${least.toFixed(decimals)}`;
  return `$${Number(value.toPrecision(2)).toFixed(Math.min(decimals, 1 - Math.floor(Math.log10(value))))}`;
}

/** Formats a share, for example `0.5 %` or `42 %`. */
export function percent(part: number, whole: number): string {
  const share = whole === 0 ? 0 : (part / whole) * 100;
  return `${share === 0 || share >= 10 ? Math.round(share) : Number(share.toPrecision(2))} %`;
}

/** Formats the share of the input tokens that were read from a cache. Returns undefined if none are reported. */
export function cachedShare(usage: Usage | undefined): string | undefined {
  const { input_tokens = 0, cached_tokens } = usage ?? {};
  return cached_tokens === undefined ? undefined : percent(cached_tokens, input_tokens);
}

const EXACT_DECIMALS = 10;

/** Describes tokens, cost and caching in one line each, for a tooltip. */
export function usageTitle(usage: Usage | undefined): string {
  if (usage === undefined) return '';
  const { input_tokens, output_tokens, total_cost, cached_tokens, cache_savings } = usage;
  return [
    input_tokens !== undefined && plural(input_tokens, 'input token'),
    cached_tokens !== undefined && `${cached_tokens.toLocaleString('en')} of them read from a cache`,
    output_tokens !== undefined && plural(output_tokens, 'output token'),
    total_cost !== undefined ? `cost ${costFigure(total_cost, EXACT_DECIMALS)}` : 'cost unknown',
    cache_savings !== undefined && `caching saved ${costFigure(cache_savings)}`,
  ]
    .filter(Boolean)
    .join('\n');
}

export function bytes(value: number): string {
  if (value < 1_000) return `${value} B`;
  if (value < 999_500) return `${trimmed(value / 1_000, 1)} kB`;
  return `${trimmed(value / 1_000_000, 1)} MB`;
}

/** Maximum difference between the clocks of two machines. Times up to a minute in the future are shown as `now`. */
const AHEAD_MAX_SECONDS = 60;

/** Formats a time as `now`, `5 s ago` or `6 d ago`. Future times, and those over a week ago, become dates. */
export function ago(ms: number, nowMs: number): string {
  const seconds = Math.floor((nowMs - ms) / 1_000);
  if (seconds < -AHEAD_MAX_SECONDS) return dateOf(new Date(ms));
  if (seconds < 5) return 'now';
  if (seconds < 60) return `${seconds} s ago`;
  if (seconds < 3_600) return `${Math.floor(seconds / 60)} m ago`;
  if (seconds < 86_400) return `${Math.floor(seconds / 3_600)} h ago`;
  if (seconds < 7 * 86_400) return `${Math.floor(seconds / 86_400)} d ago`;
  return dateOf(new Date(ms));
}

/** Formats a date and time with milliseconds, in the local time zone. */
export function exact(instant: string | number): string {
  const at = new Date(instant);
  if (Number.isNaN(at.getTime())) return `${instant}`;
  const time = `${pad(at.getHours())}:${pad(at.getMinutes())}:${pad(at.getSeconds())}`;
  return `${dateOf(at)} ${time}.${`${at.getMilliseconds()}`.padStart(3, '0')}`;
}

const DAY_MS = 86_400_000;

/** Returns the labels of a time axis, in local time. Their distance decides what they show, as months or seconds. */
export function timeLabels(splits: readonly number[]): string[] {
  const stepMs = (splits[1] ?? 0) - (splits[0] ?? 0);
  const formats = [
    [28 * DAY_MS, 0, 7],
    [DAY_MS, 5, 10],
    [60_000, 11, 16],
    [1_000, 11, 19],
  ] as const;
  const [, from, to] = formats.find(([leastMs]) => stepMs >= leastMs) ?? [0, 17, 23];
  return splits.map((ms) => exact(ms).slice(from, to));
}

/** Formats a count with its noun, for example `1 run` or `2 runs`. */
export function plural(value: number, noun: string): string {
  return `${value.toLocaleString('en')} ${noun}${value === 1 ? '' : 's'}`;
}

export function orDash(value: number | undefined, print: (value: number) => string): string {
  return value === undefined ? '–' : print(value);
}

/** Formats the duration of a run. While the run is pending, formats the time since its start. */
export function latencyOf(run: { start_time: string; end_time?: string; status: string }, nowMs = Date.now()): string {
  const { start_time, end_time, status } = run;
  if (end_time === undefined && status !== 'pending') return '';
  return durationFigure((end_time === undefined ? nowMs : millisecondsAt(end_time)) - millisecondsAt(start_time));
}

export function firstTokenOf(run: { start_time: string; first_token_time?: string }): string | undefined {
  const { start_time, first_token_time: time } = run;
  return time && durationFigure(millisecondsAt(time) - millisecondsAt(start_time));
}

/** Returns the current time, updated every `intervalMs` ms while `isTicking`, or the time of a saved trace. */
export function useNow(isTicking: boolean, intervalMs: number): number {
  const [nowMs, setNowMs] = useState(saved?.savedMs ?? Date.now());
  useEffect(() => {
    if (!isTicking || saved !== undefined) return;
    setNowMs(Date.now());
    const timer = setInterval(() => setNowMs(Date.now()), intervalMs);
    return () => clearInterval(timer);
  }, [isTicking, intervalMs]);
  return nowMs;
}

function trimmed(value: number, digits: number): string {
  return `${Number(value.toFixed(digits))}`;
}

function dateOf(at: Date): string {
  return `${at.getFullYear()}-${pad(at.getMonth() + 1)}-${pad(at.getDate())}`;
}

function pad(value: number): string {
  return `${value}`.padStart(2, '0');
}
