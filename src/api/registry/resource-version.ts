import { ApiError, badRequest, pause } from '../../core/index.ts'
import type { RegistryContext } from './registry.ts'

/** How long a read waits for a revision that this server has not seen yet. */
const patienceMs = 3_000
const pollMs = 50

/** A resourceVersion as a number; throws a 400 for anything but digits. */
export function parseResourceVersion(text: string): number {
  const number = Number(text)
  if (!/^\d+$/.test(text) || !Number.isSafeInteger(number))
    throw badRequest(`Invalid value: ${JSON.stringify(text)}: resourceVersion must be a number`)
  return number
}

/** 504 in the form by which clients know that they asked for the future. */
export function tooLarge(asked: number, current: number): ApiError {
  const message = `Too large resource version: ${asked}, current: ${current}`
  return new ApiError('Timeout', `Timeout: ${message}`, {
    details: {
      causes: [{ reason: 'ResourceVersionTooLarge', message: 'Too large resource version' }],
      retryAfterSeconds: 1,
    },
  })
}

/** Waits a moment until reads reflect `revision`, which another replica may have written. */
export async function waitForRevision(
  { store, clock }: Pick<RegistryContext, 'store' | 'clock'>,
  revision: number,
  signal: AbortSignal,
): Promise<void> {
  if (store.revision >= revision) return
  const deadline = clock.monotonic() + patienceMs
  while (store.revision < revision) {
    if (clock.monotonic() > deadline || signal.aborted) throw tooLarge(revision, store.revision)
    await pause(pollMs, signal)
  }
}
