import process from 'node:process'
import type { Readable } from 'node:stream'

/** What is piped into the program, or typed. */
export const standardInput = (): Readable & { readonly isTTY?: boolean } => process.stdin
