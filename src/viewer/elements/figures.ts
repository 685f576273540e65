import { useEffect, useState } from 'preact/hooks';
import { costFigure, dateOf, durationFigure, exact, trimmed } from '../../base/figures.ts';
import type { Usage } from '../../receiver/domain/run-view.ts';
import { saved } from '../data/trace-file.ts';

export { cachedShare, costFigure, durationFigure, exact, percent } from '../../base/figures.ts';

/** Converts an ISO 8601 timestamp to milliseconds since 1970, with microseconds as a fraction. */
export function millisecondsAt(iso: string): number {
  const whole = Date.parse(iso);
  // For speed, the receiver's format is parsed without a regular expression. A trace can contain hundreds of thousands
  // of timestamps.
  if (iso.length !== 27 || iso[19] !== '.') return whole;
  return whole + Number(iso.slice(23, 26)) / 1_000;
}

/** Formats a count, for example `1,234`, `123k` or `1.2M`. */
export function countFigure(value: number): string {
  if (value < 100_000) return Math.round(value).toLocaleString('en');
  if (value < 999_500) return `${Math.round(value / 1_000)}k`;
  return `${trimmed(value / 1_000_000, 1)}M`;
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
