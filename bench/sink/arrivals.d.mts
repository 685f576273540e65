/** What has arrived, counted. */
export class Arrivals {
  start(id: string): void;
  end(id: string): void;
  readonly summary: {
    readonly posted: number;
    readonly complete: number;
    readonly startRecords: number;
    readonly endRecords: number;
    readonly malformed: number;
    readonly payloadBytes: number;
  };
}
