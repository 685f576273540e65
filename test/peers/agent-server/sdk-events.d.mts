export declare function sdkEventIds(
  url: string,
  threadId: string,
  channels: readonly string[],
  lastId: string,
): Promise<string[]>;
