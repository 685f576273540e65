import type { Stats } from '#src/run/stats.ts';

export function addsUp(stats: Stats): boolean {
  const places = stats.open + stats.queued + stats.inFlight + stats.spooled + stats.sent + stats.dropped;
  const reasons = Object.values(stats.droppedByReason).reduce((sum, count) => sum + count, 0);
  const isNegative = Object.values(stats).some((count) => typeof count === 'number' && count < 0);
  return !isNegative && stats.created + stats.recovered === places && stats.dropped === reasons;
}
