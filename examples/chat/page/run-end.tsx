import type { JSX } from 'preact';
import type { RunState } from './conversation.ts';
import { LongText } from './text.tsx';

/** Whether a run ended before its answer did; one that asks for an approval has only begun. */
export function isCutShort({ status, error }: RunState): boolean {
  return status === 'failed' || (status === 'interrupted' && error !== undefined);
}

/** How such a run ended, in words. */
export function RunEnd({ run: { status, error = '' } }: { run: RunState }): JSX.Element {
  if (status !== 'failed') return <>{error === 'cancelled' ? 'This was stopped.' : `This was interrupted: ${error}`}</>;
  return (
    <>
      <strong>The answer failed.</strong> <LongText value={error} />
    </>
  );
}
