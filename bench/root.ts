import { join } from 'node:path'

/** The checkout; benches run from a build of their own and cannot tell by their own place. */
export const root = process.env['SALLYPORT_ROOT'] ?? process.cwd()

/** A file of the checkout. */
export const inRoot = (...parts: string[]): string => join(root, ...parts)
