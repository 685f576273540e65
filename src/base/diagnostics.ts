import { types } from '../platform/node.ts';
import { forgetOldest } from './forget-oldest.ts';
import { shared } from './shared.ts';
import { visible } from './text.ts';

/** The minimum level to log. `silent` turns off logging. */
export type LogLevel = 'silent' | 'error' | 'warn' | 'info' | 'debug';

/**
 * A log level or a log function. A level writes log lines of at least that level to standard error. A function receives
 * all log lines instead. Errors thrown by the function are ignored.
 */
export type Log = LogLevel | ((level: Exclude<LogLevel, 'silent'>, message: string) => void);

export const LEVELS: readonly LogLevel[] = ['silent', 'error', 'warn', 'info', 'debug'];

/** Maximum number of lines that `warnOnce` logs. Prevents a flood of log lines from a loop. */
const PLACES_MAX = 1_000;

/** Maximum number of values to redact. At the limit, a new value replaces the oldest one. */
const CONCEALED_MAX = 1_000;

/** Minimum length of a redacted value. Shorter secrets could also be parts of ordinary words. */
const CONCEALED_CHARACTERS_MIN = 6;

/** Number of consecutive characters of a secret that may reveal it. */
const PART_CHARACTERS = 8;

const concealed = new Set<string>();
const places = new Set<string>();
let log: Log = 'warn';
let isLogSet = false;
let calling = (call: () => void): void => call();

const own = {
  /** Sets the log level or log function for all exporters in the process. */
  setLog(to: Log): void {
    log = to;
    isLogSet = true;
  },

  /** Sets a wrapper that turns off tracing while a log line is written. */
  callBy(caller: (call: () => void) => void): void {
    calling = caller;
  },

  get isLogSet(): boolean {
    return isLogSet;
  },

  /** Redacts secrets, for example API keys, in all later log lines. */
  conceal(values: readonly string[]): void {
    for (const value of values) {
      if (value.length < CONCEALED_CHARACTERS_MIN) continue;
      concealed.delete(value);
      concealed.add(value);
    }
    forgetOldest(concealed, CONCEALED_MAX);
  },

  /**
   * Redacts the same secrets in what another program says. Undefined if the text still contains a part of one, for
   * example because it is cut.
   */
  redacted(text: string): string | undefined {
    const shown = withoutSecrets(text);
    const plain = shown.replace(/[^\w+/=.~-]+/g, '');
    return [...concealed].some((value) => sharesPart(plain, value)) ? undefined : shown;
  },

  error: (message: string): void => print('error', message),
  warn: (message: string): void => print('warn', message),
  info: (message: string): void => print('info', message),
  debug: (message: string): void => print('debug', message),

  warnOnce(place: string, message: string): void {
    if (places.has(place) || places.size >= PLACES_MAX) return;
    places.add(place);
    print('warn', message);
  },

  /** Resets `warnOnce`. Used in tests. */
  forgetPlaces: (): void => places.clear(),
};

/** Writes the library's log lines. They contain no API keys, and payloads only where a service quotes them in a refusal. */
export const diagnostics: typeof own = shared('diagnostics', () => own);

let isPrinting = false;

function print(level: Exclude<LogLevel, 'silent'>, message: string): void {
  // If the log function is traced, a call could log another line and start an endless loop.
  if (isPrinting || (typeof log !== 'function' && LEVELS.indexOf(level) > LEVELS.indexOf(log))) return;
  isPrinting = true;
  try {
    const line = visible(withoutSecrets(message));
    calling(() => {
      if (typeof log !== 'function') {
        console.error(`runspan: ${line}`);
        return;
      }
      const result: unknown = log(level, line);
      if (types.isPromise(result)) result.catch(() => {});
    });
  } catch {
    // The log function threw, so the error cannot be logged.
  } finally {
    isPrinting = false;
  }
}

/** Whether a text contains a part of a secret, of `PART_CHARACTERS`. */
function sharesPart(text: string, secret: string): boolean {
  for (let at = 0; at + PART_CHARACTERS <= secret.length; at++) {
    if (text.includes(secret.slice(at, at + PART_CHARACTERS))) return true;
  }
  return false;
}

/** Redacts secrets and URL credentials, which error messages from other libraries may contain. */
function withoutSecrets(message: string): string {
  let shown = message.replace(/(?<=:\/\/)[^\s/?#@]{1,1024}@/g, '[Redacted]@');
  for (const value of concealed) shown = shown.replaceAll(value, '[Redacted]');
  return shown;
}
