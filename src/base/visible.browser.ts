/** The console of a browser is not a terminal, so no character needs an escape. */
export const visible = (text: string): string => text;

export const visibleJson: typeof visible = visible;
