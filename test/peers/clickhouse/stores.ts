import type { ClickHouseStore } from '#src/receiver/store/clickhouse/clickhouse-store.ts';
import { STORE_METHODS } from '#src/receiver/store/store.ts';
import type { Store } from '#src/receiver.ts';

const EARLY_METHODS: readonly string[] = [
  ...(['apply', 'subscribe', 'addFeedback', 'mergedRuns'] satisfies (keyof Store)[]),
  ...(['addTokenSecret', 'tokenSecrets', 'revokeTokens', 'tokensRevokedMs'] satisfies (keyof Store)[]),
];
const LATE_METHODS: readonly string[] = STORE_METHODS.filter((method) => !EARLY_METHODS.includes(method));

/** Returns a store whose queries wait until they see all earlier writes. */
export function settling(store: ClickHouseStore): Store {
  let settled: Promise<void> | undefined;
  const settle = (): Promise<void> => {
    settled ??= store.settled();
    return settled;
  };
  return new Proxy(store, {
    get(target, name: keyof Store) {
      const call = (target[name] as (...args: unknown[]) => unknown).bind(target);
      const isLate = LATE_METHODS.includes(name);
      if (name === 'runs') {
        return async function* (...args: unknown[]) {
          await settle();
          yield* call(...args) as ReturnType<Store['runs']>;
        };
      }
      if (!isLate && name !== 'apply' && name !== 'addFeedback') return call;
      return async (...args: unknown[]) => {
        if (isLate) await settle();
        const result = await call(...args);
        if (!isLate || name === 'remove') settled = undefined;
        return result;
      };
    },
  });
}
