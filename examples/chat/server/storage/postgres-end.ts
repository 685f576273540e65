/** How long a server may take to say good-bye. */
const END_MS = 2_000;

/** Ends a connection, or a pool of such: one whose other end has vanished is waited for no longer. */
export async function endOf(connection: { end(): Promise<void> }): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const deadline = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, END_MS);
  });
  try {
    await Promise.race([connection.end(), deadline]);
  } finally {
    clearTimeout(timer);
  }
}
