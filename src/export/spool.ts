import type { SpooledRecord } from './spool-record.ts';
export interface Segment {
  readonly path: string;
  readonly isForeign: boolean;
}
export interface ReadSegment {
  readonly segment: Segment;
  readonly records: readonly SpooledRecord[];
  readonly corrupt: number;
  readonly isExpired: boolean;
}
export interface Spool {
  append(record: SpooledRecord): Segment | undefined;
  release(segment: Segment): void;
  spill(records: readonly SpooledRecord[]): Segment | undefined;
  takeOver(): number;
  next(): ReadSegment | undefined;
  putBack(segment: Segment): void;
  done(segment: Segment): void;
  readonly bytes: number;
  readonly hasNext: boolean;
  close(): void;
}
export declare function openSpool(options: object): Spool;
