export function gate<Value = void>(): Promise<Value> & { open(value: Value): void; fail(error: unknown): void } {
  let open = (_value: Value): void => {};
  let fail = (_error: unknown): void => {};
  const promise = new Promise<Value>((resolve, reject) => {
    open = resolve;
    fail = reject;
  });
  return Object.assign(promise, { open, fail });
}
