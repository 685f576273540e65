/** How the page names what was measured, and the colour that each has: one that can be told from light and from dark ground. */
const SERIES = {
  untraced: { label: 'untraced', colour: '#a3aab2' },
  limit: { label: 'limit', colour: '#7d8590' },
  traceable: { label: 'runspan traceable', colour: '#3b82f6' },
  processor: { label: 'runspan processor', colour: '#a855f7' },
  'otlp-json': { label: 'OTel, OTLP/JSON', colour: '#eab308' },
  'otlp-protobuf': { label: 'OTel, OTLP/protobuf', colour: '#c2710c' },
  langfuse: { label: 'langfuse', colour: '#10b981' },
  braintrust: { label: 'braintrust', colour: '#ec4899' },
  OpenTelemetry: { label: 'OpenTelemetry', colour: '#eab308' },
  runspan: { label: 'runspan', colour: '#3b82f6' },
  langsmith: { label: 'langsmith', colour: '#ef4444' },
};

export function labelOf(series) {
  return SERIES[series]?.label ?? series;
}

export function colourOf(series) {
  return SERIES[series]?.colour ?? '#3b82f6';
}
