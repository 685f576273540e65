import { useEffect, useState } from 'preact/hooks';

/** The time, told anew every so often as long as somebody waits for it. */
export function useNow(isWaiting: boolean, intervalMs: number): number {
  const [nowMs, setNowMs] = useState(Date.now());
  useEffect(() => {
    if (!isWaiting) return;
    setNowMs(Date.now());
    const timer = setInterval(() => setNowMs(Date.now()), intervalMs);
    return () => clearInterval(timer);
  }, [isWaiting, intervalMs]);
  return nowMs;
}
