import zlib from 'node:zlib';

/** Counts the bodies that a thread of zlib compresses, so that virtual time can wait for them. */
export const compressions = { pending: 0 };

const { gzip } = zlib;

zlib.gzip = ((buffer: Buffer, options: zlib.ZlibOptions, done: (error: Error | null, result: Buffer) => void) => {
  compressions.pending++;
  gzip(buffer, options, (error, result) => {
    compressions.pending--;
    done(error, result);
  });
}) as typeof gzip;
