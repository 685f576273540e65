import { guard } from '../../base/guard.ts';
import { rootContext } from '../../run/context/context.ts';
import { applyIn, enteredContext } from '../../run/context/current.ts';
import { interceptOwn, type StreamObserver } from './observer.ts';

interface Observable {
  lift(operator: { call(subscriber: object): unknown }): Observable;
  subscribe(...args: unknown[]): unknown;
}

/** Whether a value is an `Observable` of RxJS. Others have no `lift`, and a store of Redux has only `subscribe`. */
export function isObservable(value: object): boolean {
  return ['subscribe', 'pipe', 'lift'].every((key) => typeof (value as Record<string, unknown>)[key] === 'function');
}

/**
 * Observes the first subscription, also that of an operator that `pipe` has added. Only the application subscribes, so
 * the source stays lazy.
 */
export function followObservable(source: object, observer: StreamObserver): boolean {
  let isTaken = false;
  return interceptOwn(source, 'subscribe', (subscribe, self, args) => {
    const around = enteredContext() ?? rootContext;
    const call = (subscriber: object): unknown => {
      guard('traceable', () => followSubscriber(subscriber, observer, around));
      return observer.step(subscribe, self, [subscriber]);
    };
    // RxJS makes a subscriber of the arguments, which may be functions, before it calls the operator.
    const observed = isTaken ? undefined : guard('traceable', () => (self as Observable).lift({ call }));
    isTaken = true;
    return observed === undefined ? Reflect.apply(subscribe, self, args) : observed.subscribe(...args);
  });
}

/** Observes a subscriber, whose functions run in the context in which the consumer has subscribed. */
function followSubscriber(subscriber: object, observer: StreamObserver, around: typeof rootContext): void {
  const follow = (key: string, observe: (value: unknown) => void): boolean =>
    interceptOwn(subscriber, key, (method, self, args) => {
      guard('traceable', () => observe(args[0]));
      return applyIn(around, method, self, args);
    });
  follow('next', (value) => observer.chunk(value));
  follow('error', (error) => observer.fail(error));
  follow('complete', () => observer.end());
  follow('unsubscribe', () => observer.cancel());
  observer.watch(subscriber);
}
