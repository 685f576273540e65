import { guard } from '../base/guard.ts';

/** What has to know that nobody can use an object any more. It must not hold that object. */
export interface Abandonable {
  abandoned(): void;
}

const collected = new FinalizationRegistry<Abandonable>((owner) => guard('abandonment', () => owner.abandoned()));

/** Tells `owner` when `target` has been collected, unless the returned function is called before. */
export function whenAbandoned(target: object, owner: Abandonable): () => void {
  const token = {};
  collected.register(target, owner, token);
  return () => void collected.unregister(token);
}
