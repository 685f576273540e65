/** Calls `work` while the prototype has these properties. Do not use `expect` in `work`, which reads them too. */
export function polluted<Result>(prototype: object, properties: Record<string, unknown>, work: () => Result): Result {
  const entries = Object.entries(properties);
  const described = { enumerable: true, configurable: true, writable: true };
  const descriptors = entries.map(([, value]) => Object.assign(Object.create(null), described, { value }));
  try {
    entries.forEach(([key], index) => void Object.defineProperty(prototype, key, descriptors[index]));
    return work();
  } finally {
    for (const [key] of entries) Reflect.deleteProperty(prototype, key);
  }
}
