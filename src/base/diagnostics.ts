import { types } from './node.ts';
import { shared } from './shared.ts';
import { visible } from './text.ts';

/** The least severe level to log. `silent` turns off logging. */
export type LogLevel = 'silent' | 'error' | 'warn' | 'debug';

/**
 * Where log lines are sent. A level writes lines with this level or a more severe one to standard error. A function
 * receives every line instead, and nothing is written to standard error. Errors thrown by the function are ignored.
 */
export type Log = LogLevel | ((level: Exclude<LogLevel, 'silent'>, message: string) => void);

export const LEVELS: readonly LogLevel[] = ['silent', 'error', 'warn', 'debug'];

/**
 * Maximum number of different `place` keys for which `warnOnce` logs a line. Prevents a flood of lines if a loop
 * creates new keys.
 */
const PLACES_MAX = 1_000;

/** Maximum number of values to redact. Each further value replaces the oldest one, which is then no longer redacted. */
const CONCEALED_MAX = 1_000;

/** Shorter values are not redacted, because ordinary words in a log line could contain them. */
const CONCEALED_CHARACTERS_MIN = 6;

const concealed = new Set<string>();
const places = new Set<string>();
let log: Log = 'warn';
let isLogSet = false;
let calling = (call: () => void): void => call();

const own = {
  /** Sets where log lines are sent, for all exporters in the process. */
  setLog(to: Log): void {
    log = to;
    isLogSet = true;
  },

  /** Sets the function that calls the log function and the console with tracing turned off. */
  callBy(caller: (call: () => void) => void): void {
    calling = caller;
  },

  get isLogSet(): boolean {
    return isLogSet;
  },

  /** Redacts these values, for example API keys, in all later log lines. */
  conceal(values: readonly string[]): void {
    for (const value of values) {
      if (value.length < CONCEALED_CHARACTERS_MIN) continue;
      concealed.delete(value);
      concealed.add(value);
      if (concealed.size > CONCEALED_MAX) concealed.delete(concealed.values().next().value as string);
    }
  },

  error: (message: string): void => print('error', message),
  warn: (message: string): void => print('warn', message),
  debug: (message: string): void => print('debug', message),

  warnOnce(place: string, message: string): void {
    if (places.has(place) || places.size >= PLACES_MAX) return;
    places.add(place);
    print('warn', message);
  },

  /** Resets `warnOnce` in tests. */
  forgetPlaces: (): void => places.clear(),
};

/** Writes all of the library's log lines, which never contain a payload or an API key. */
export const diagnostics: typeof own = shared('diagnostics', () => own);

let isPrinting = false;

function print(level: Exclude<LogLevel, 'silent'>, message: string): void {
  // A traced log function could cause another log line, which would start an endless loop.
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
    // The log function threw, so no log line can report the error.
  } finally {
    isPrinting = false;
  }
}

/** Redacts concealed values and URL credentials, because error messages from other libraries may contain secrets. */
function withoutSecrets(message: string): string {
  let shown = message.replace(/(?<=:\/\/)[^\s/?#@]{1,1024}@/g, '[Redacted]@');
  for (const value of concealed) shown = shown.replaceAll(value, '[Redacted]');
  return shown;
}
