import { safeText } from '../base/text.ts';

/** Causes followed below an error, so that a chain that leads back to itself ends. */
const CAUSES_MAX = 8;

/**
 * The `error` field of a run: `Name: message` on the first line, then the stack, then each cause in the same form.
 * A thrown value that is no Error is told by its text. Never throws, whatever getters the value has.
 */
export function errorText(thrown: unknown): string {
  let text = described(thrown);
  let cause = causeOf(thrown);
  for (let depth = 0; cause !== undefined && depth < CAUSES_MAX; depth++) {
    text += `\nCaused by: ${described(cause)}`;
    cause = causeOf(cause);
  }
  return text;
}

function described(thrown: unknown): string {
  try {
    if (!(thrown instanceof Error)) return safeText(thrown);
    const name = safeText(thrown.name);
    const message = safeText(thrown.message);
    const headline = name === '' || message === '' ? name + message : `${name}: ${message}`;
    return headline + frames(safeText(thrown.stack ?? ''));
  } catch {
    return '[an error that cannot be read]';
  }
}

// The head of a stack is taken when the error is made; name and message may have been set since. The pattern crosses no
// line, else the many empty lines of a long message would each be tried to the end.
function frames(stack: string): string {
  const start = stack.search(/\n[ \t]+at /);
  return start < 0 ? '' : stack.slice(start);
}

function causeOf(thrown: unknown): unknown {
  try {
    return thrown instanceof Error ? thrown.cause : undefined;
  } catch {
    return undefined;
  }
}
