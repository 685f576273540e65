import { types } from './node.ts';
import { visible } from './text.ts';

/** The least severe level that is logged. `silent` logs nothing. */
export type LogLevel = 'silent' | 'error' | 'warn' | 'debug';

/**
 * The destination of log lines. A level selects the lines that are written to standard error. A function is called with
 * each line instead. Errors that the function throws are ignored.
 */
export type Log = LogLevel | ((level: Exclude<LogLevel, 'silent'>, message: string) => void);

export const LEVELS: readonly LogLevel[] = ['silent', 'error', 'warn', 'debug'];

/** Maximum number of places that `warnOnce` remembers. Further places log nothing, so a loop cannot flood the log. */
const PLACES_MAX = 1_000;

/** Maximum number of concealed values. The oldest value is removed first. Short values are not concealed. */
const CONCEALED_MAX = 1_000;
const CONCEALED_CHARACTERS_MIN = 6;

const concealed = new Set<string>();
const places = new Set<string>();
let log: Log = 'warn';
let isLogSet = false;
let calling = (call: () => void): void => call();

/** Writes all log lines. Each log line contains neither payloads nor keys. */
export const diagnostics = {
  /** Sets the destination of log lines for all exporters of the process. */
  setLog(to: Log): void {
    log = to;
    isLogSet = true;
  },

  /** Sets the function that calls the log function or the console. The composition root turns tracing off for the call. */
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

  /** Logs a warning only the first time for each `place`. */
  warnOnce(place: string, message: string): void {
    if (places.has(place) || places.size >= PLACES_MAX) return;
    places.add(place);
    print('warn', message);
  },

  /** Resets `warnOnce`. Only used by tests. */
  forgetPlaces: (): void => places.clear(),
};

let isPrinting = false;

function print(level: Exclude<LogLevel, 'silent'>, message: string): void {
  // A traced log function could otherwise cause an endless loop of log lines.
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
    // The log function failed, so the failure cannot be reported.
  } finally {
    isPrinting = false;
  }
}

/** Redacts concealed values and URL credentials, which messages of other libraries may contain. */
function withoutSecrets(message: string): string {
  let shown = message.replace(/(?<=:\/\/)[^\s/?#@]{1,1024}@/g, '[Redacted]@');
  for (const value of concealed) shown = shown.replaceAll(value, '[Redacted]');
  return shown;
}
