import type { IncomingHttpHeaders } from 'node:http';

export interface LocalModelRequest {
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: Record<string, unknown>;
  readonly text: string;
  readonly closed: Promise<'finished' | 'aborted'>;
}

export interface LocalModel {
  readonly url: string;
  readonly requests: LocalModelRequest[];
  close(): Promise<void>;
}

export declare function startLocalModel(options?: { port?: number }): Promise<LocalModel>;
