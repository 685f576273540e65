import { ignoreRejection } from './rejection.ts';
import { visible } from './text.ts';

/** What is told: nothing, errors, errors and warnings, or everything. */
export type LogLevel = 'silent' | 'error' | 'warn' | 'debug';

/**
 * Where diagnostics go: a level for lines on standard error, or a function that is called with each line instead. What
 * the function throws is ignored.
 */
export type Log = LogLevel | ((level: Exclude<LogLevel, 'silent'>, message: string) => void);

/** Every level, quietest first. */
export const LEVELS: readonly LogLevel[] = ['silent', 'error', 'warn', 'debug'];

/** Places remembered by `once`; beyond it nothing new is told, so that a loop of distinct places cannot flood. */
const PLACES_MAX = 1_000;

/** Values that no line may show; of a longer list the oldest are forgotten. Shorter ones are words of any text. */
const CONCEALED_MAX = 1_000;
const CONCEALED_CHARACTERS_MIN = 6;

const concealed = new Set<string>();
const places = new Set<string>();
let log: Log = 'warn';
let isLogSet = false;
let calling = (call: () => void): void => call();

/**
 * The only printer of the library: background trouble and misuse are told here, in one line each, and never with a
 * payload or a key in it.
 */
export const diagnostics = {
  /** Takes effect for all exporters of the process. */
  setLog(to: Log): void {
    log = to;
    isLogSet = true;
  },

  /** How the log function or the console is called; the composition root has them called untraced. */
  callBy(caller: (call: () => void) => void): void {
    calling = caller;
  },

  /** Whether anybody has said where diagnostics go. */
  get isLogSet(): boolean {
    return isLogSet;
  },

  /** From now on no line shows these values, keys for example, whoever puts them into it: a dispatcher or a callback. */
  conceal(values: readonly string[]): void {
    for (const value of values) {
      if (value.length < CONCEALED_CHARACTERS_MIN) continue;
      concealed.delete(value);
      concealed.add(value);
      if (concealed.size > CONCEALED_MAX) concealed.delete(concealed.values().next().value as string);
    }
  },

  error(message: string): void {
    tell('error', message);
  },

  warn(message: string): void {
    tell('warn', message);
  },

  debug(message: string): void {
    tell('debug', message);
  },

  /** Warns the first time that `place` is reported, and is silent for the same place after that. */
  warnOnce(place: string, message: string): void {
    if (places.has(place) || places.size >= PLACES_MAX) return;
    places.add(place);
    tell('warn', message);
  },

  /** Forgets which places have been told, for tests. */
  forgetPlaces(): void {
    places.clear();
  },
};

let telling = false;

function tell(level: Exclude<LogLevel, 'silent'>, message: string): void {
  // A log function that is traced itself would call us again for its own trouble, without end.
  if (telling) return;
  telling = true;
  try {
    const line = visible(withoutSecrets(message));
    if (typeof log !== 'function' && LEVELS.indexOf(level) > LEVELS.indexOf(log)) return;
    calling(() => {
      if (typeof log === 'function') ignoreRejection(log(level, line));
      else console.error(`runspan: ${line}`);
    });
  } catch {
    // There is nobody left to tell.
  } finally {
    telling = false;
  }
}

/** Messages of others repeat what they were given: header values, addresses with user and password. */
function withoutSecrets(message: string): string {
  let shown = message.replace(/(?<=:\/\/)[^\s/?#@]{1,1024}@/g, '[Redacted]@');
  for (const value of concealed) shown = shown.replaceAll(value, '[Redacted]');
  return shown;
}
