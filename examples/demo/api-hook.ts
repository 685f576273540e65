// Module hook that resolves OpenTelemetry's API to the copy in this package.
export const hookUrl = import.meta.url;

const api = { url: hookUrl.replace(/[^/]*$/, 'opentelemetry-api.js'), shortCircuit: true };

export function resolve(name: string, context: object, next: (name: string, context: object) => object): object {
  return name === '@opentelemetry/api' ? api : next(name, context);
}
