import type { WriteAttempt } from '../../core/index.ts'
import type { RegistryContext } from './registry-context.ts'

/** Asks every admission in its order; the first one that throws refuses the write. */
export async function admit(
  { admissions }: RegistryContext,
  attempt: WriteAttempt,
  signal: AbortSignal,
): Promise<void> {
  for (const admission of admissions) await admission(attempt, signal)
}
