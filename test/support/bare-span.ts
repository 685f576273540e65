export function bareSpan(name: string, ids: { traceId: string; spanId: string }) {
  return {
    name,
    kind: 0,
    startTime: [1, 0],
    endTime: [2, 0],
    ended: true,
    status: { code: 0 },
    attributes: {},
    events: [],
    links: [],
    resource: { attributes: {} },
    instrumentationScope: { name: 'x' },
    instrumentationLibrary: { name: 'x' },
    spanContext: () => ({ ...ids, traceFlags: 1 }),
  };
}
