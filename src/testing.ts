export { type RunRecorder, recordRuns } from './testing/record-runs.ts';
