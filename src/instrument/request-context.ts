import { guard } from '../base/guard.ts';

/** Hands work to the platform, which keeps the instance going until it is done. False when it cannot be handed over. */
export type HandOver = (work: Promise<unknown>) => boolean;

/** Time in which a handler that has answered can still give its answer to the platform. */
const ANSWER_MARGIN_MS = 250;

/**
 * Where platforms keep the context of the request that is being served: Next.js asks there, and hosts of it put it there
 * (https://nextjs.org/docs/app/guides/self-hosting#after); `@vercel/functions` reads the other one.
 */
const CONTEXTS = [Symbol.for('@next/request-context'), Symbol.for('@vercel/request-context')];

/** What of a platform's object is looked at. */
interface Platform {
  readonly waitUntil?: unknown;
  readonly getRemainingTimeInMillis?: unknown;
}

/**
 * The platform's `waitUntil` for this call, if it has one: that of an argument (`(request, env, context)` or
 * `(request, context)`), or that of the request's context. Asked when the handler is called, as the context is gone later.
 */
export function handOverOf(args: readonly unknown[]): HandOver | undefined {
  for (const platform of [...platformsOf(args), ...contexts()]) {
    const waitUntil = guard('withFlush', () => platform.waitUntil);
    if (typeof waitUntil !== 'function') continue;
    return (work) => {
      const handed = guard('withFlush', () => {
        Reflect.apply(waitUntil, platform, [work]);
        return true;
      });
      return handed === true;
    };
  }
  return undefined;
}

/** What AWS Lambda leaves to a call, with a margin for the answer; infinite elsewhere. */
export function remainingMs(args: readonly unknown[]): number {
  for (const platform of platformsOf(args)) {
    const left = guard('withFlush', () => {
      const { getRemainingTimeInMillis } = platform;
      if (typeof getRemainingTimeInMillis !== 'function') return undefined;
      return Number(Reflect.apply(getRemainingTimeInMillis, platform, []));
    });
    if (left !== undefined && !Number.isNaN(left)) return Math.max(0, left - ANSWER_MARGIN_MS);
  }
  return Number.POSITIVE_INFINITY;
}

/** The third argument and the second: the first is the request or the event. */
function platformsOf(args: readonly unknown[]): Platform[] {
  return [args[2], args[1]].filter((arg): arg is Platform => typeof arg === 'object' && arg !== null);
}

function contexts(): Platform[] {
  return CONTEXTS.flatMap((symbol) => {
    const context = guard('withFlush', () => {
      const holder = (globalThis as Record<symbol, { get?: () => unknown } | undefined>)[symbol];
      return holder?.get?.();
    });
    return typeof context === 'object' && context !== null ? [context] : [];
  });
}
