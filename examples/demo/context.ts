import type { ConfigureOptions } from 'runspan';
import type { RunSpanProcessor } from 'runspan/otel';
import type { Platform, PlatformRequest } from 'runspan/testing';

/** Runs a function inside a span. */
export type Tracer = <Result>(
  name: string,
  attributes: Readonly<Record<string, string | number>>,
  work: () => Promise<Result>,
) => Promise<Result>;

/** What the parts of the demo share. */
export interface DemoContext {
  /** Stands for the platform in the cloud. */
  readonly platform: Platform;
  readonly selfHosted: Platform;
  /** Options of exporters to the platform. */
  readonly service: ConfigureOptions & { readonly endpoint: string; readonly apiKey: string };
  readonly createTracer: (processor: RunSpanProcessor) => Tracer;
  /** URL of the package's main entry, for programs that the demo starts. */
  readonly packageUrl: string;
  /** Ids of the demo's resources, for the mistaken requests. */
  readonly ids: Record<string, string>;
  /** Sends a request to the chat application. */
  readonly chat: (request: Request) => Promise<Response>;
  /** Responses of the chat application. */
  readonly responses: readonly Pick<PlatformRequest, 'method' | 'path' | 'status'>[];
  check(what: string, seen: unknown, expected?: unknown): void;
}

/** The routes of `examples/chat` over an agent that follows a script. */
export interface ScriptedChat {
  fetch(request: Request): Promise<Response>;
  close(): Promise<void>;
}

/** Returns the response of the platform's query API. */
export async function queried<Result>({ url, apiKey }: Platform, path: string): Promise<Result> {
  return (await (await fetch(url + path, { headers: { 'x-api-key': apiKey } })).json()) as Result;
}
