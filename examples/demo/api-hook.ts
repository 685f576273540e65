// A hook for `registerHooks` and `register` of `node:module`, which finds the copy of OpenTelemetry's API in this package.
export const hookUrl = import.meta.url;

const api = { url: hookUrl.replace(/[^/]*$/, 'opentelemetry-api.js'), shortCircuit: true };

export function resolve(name: string, context: object, next: (name: string, context: object) => object): object {
  return name === '@opentelemetry/api' ? api : next(name, context);
}
