import { type Browser, chromium } from 'playwright-core'
import { findProgram, pathOrReason } from './peers.ts'

/** The machine's Chromium, if it has one; says so if not. */
export const chromiumPath = pathOrReason(findProgram('chromium'))

/** Starts it without a window. */
export async function openBrowser(): Promise<Browser> {
  if (chromiumPath === undefined) throw new Error('chromium is not installed')
  // Inside containers there is no sandbox to be had; the pages are our own.
  return chromium.launch({ executablePath: chromiumPath, args: ['--no-sandbox'] })
}
