// These runtimes have no file system, so runs are kept in memory only.

export const hasFiles = false;

export const spoolFolder = (): string => '';
