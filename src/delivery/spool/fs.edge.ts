// Edge runtimes have no file system, so runs are kept only in memory.

export const hasFiles = false;

export const spoolFolder = (): string => '';
