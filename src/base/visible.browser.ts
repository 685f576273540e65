/** A browser console is not a terminal, so no characters need to be escaped. */
export const visible = (text: string): string => text;

export const visibleJson: typeof visible = visible;
