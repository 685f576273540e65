export function median(numbers: readonly number[]): number | undefined;
export function quantile(sorted: ArrayLike<number>, share: number): number | undefined;
