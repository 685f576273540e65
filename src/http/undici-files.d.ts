/** undici has types only for the package as a whole. */
declare module 'undici/lib/*';
