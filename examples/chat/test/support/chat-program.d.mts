import type { ChildProcess } from 'node:child_process';

export function startChat(argv: readonly string[], stderr?: 'inherit' | 'pipe', program?: string): ChildProcess;
export const AT_ONCE: readonly string[];
export function greetingOf(chat: ChildProcess): Promise<{ lines: string[]; url: string; traces: string }>;
